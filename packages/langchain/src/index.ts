export { commands } from './commands.ts';
export { interruptOn } from './interrupt-on.ts';
export { langchain, type LangchainOptions, type LangchainParts } from './langchain.ts';
export type { MediaOption, MediaPlace, MediaPolicy } from './media-policy.ts';
export type { ProgressChunk } from './exec-tool.ts';
export { toTools, type ToToolsOptions } from './to-tools.ts';
export type { ToolArtifact } from './tool-message.ts';
