export { isBelow, readConfined, type ConfinedOptions } from './confined-read.ts';
export { Disk, type DiskOptions } from './disk.ts';
export { booleanField, field, listField, textField } from './field-values.ts';
export type { FrontmatterCode } from './fence.ts';
export {
  fileStamp,
  FileWatcher,
  type FileChange,
  type FileLook,
  type FileWatcherOptions,
} from './file-watcher.ts';
export { readFrontmatter, type FrontmatterFile, type FrontmatterOptions } from './frontmatter.ts';
export { projectFolders } from './project-folders.ts';
export type { FrontmatterData, FrontmatterValue } from './yaml-entries.ts';
