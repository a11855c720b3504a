export { McpServerCapability, type McpServerOptions } from './mcp-server-capability.ts';
export type { ToolFilter } from './tool-list.ts';
