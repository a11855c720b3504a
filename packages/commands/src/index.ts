export {
  defaultCommandFolders,
  type CommandFolder,
  type DefaultCommandFolders,
  type DefaultCommandFoldersOptions,
} from './default-folders.ts';
export type { CommandDialect } from './dialect.ts';
export type { CommandHandlers, FileRequest, ShellRequest } from './handlers.ts';
export { markdownCommands, type MarkdownCommandsOptions } from './markdown-commands.ts';
