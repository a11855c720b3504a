export { StdioTransport, type JsonRpcMessage, type StdioOptions } from './stdio/stdio-transport.ts';
