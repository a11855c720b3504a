import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { fileStamp, type FileLook } from '@patchbay/files';

/** The least look there is: the text files of a folder and of the folders in it. */
export async function lookAt(root: string): Promise<FileLook> {
  const files = new Map<string, string>();
  const folders = new Map<string, (name: string) => boolean>();
  const ways = [root];
  const visit = async (folder: string, depth: number): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => undefined);
    if (entries === undefined) return;
    folders.set(folder, (name) => !name.startsWith('.'));
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.name.startsWith('.')) continue;
      if (entry.isSymbolicLink()) ways.push(path);
      const found = await stat(path, { bigint: true }).catch(() => undefined);
      if (found?.isDirectory() === true && depth < 2) await visit(path, depth + 1);
      if (found?.isFile() === true) files.set(path, fileStamp(found));
    }
  };
  await visit(root, 0);
  return { files, folders, ways };
}
