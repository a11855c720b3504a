import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * The folders that belong to a project: from `cwd` up to the root of its repository (what has a `.git`), the nearest first.
 * Outside of a repository only `cwd` itself.
 */
export async function projectFolders(cwd: string): Promise<readonly string[]> {
  const folders: string[] = [];
  for (let at = cwd; ; at = dirname(at)) {
    folders.push(at);
    if (await exists(join(at, '.git'))) return folders;
    if (dirname(at) === at) return [cwd];
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
