export { McpServerCapability, type McpServerOptions } from './mcp-server-capability.ts';
export { toMcpUri, toServerUri } from './resource-uri.ts';
export type { ToolFilter } from './tool-list.ts';
