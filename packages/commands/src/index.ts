export { markdownCommands, type MarkdownCommandsOptions } from './markdown-commands.ts';
export type { CommandDialect } from './substitute.ts';
