import type { Dirent } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import type { Problem } from '@patchbay/protocols';

/** A folder with a SKILL.md. */
export interface FoundSkill {
  /** As it was reached. */
  readonly path: string;
  /** The real folder: every read stays in it. */
  readonly root: string;
  /** Of its SKILL.md. */
  readonly file: string;
  /** Differs when the file was changed or replaced. */
  readonly stamp: string;
}

export interface ScanResult {
  readonly skills: readonly FoundSkill[];
  readonly problems: readonly Problem[];
}

const MAX_DEPTH = 5;
const MAX_FOLDERS = 2_000;
const IGNORED: ReadonlySet<string> = new Set(['node_modules', '__pycache__']);

/**
 * Finds skills below a folder: breadth first, sorted, bounded. A skill's folder is not looked into: what is below it is
 * its own. Hidden folders and installed packages are left out. Links are followed, each real folder once.
 */
export async function scanSkills(
  folder: string,
  source: string,
  optional: boolean,
): Promise<ScanResult> {
  const scan = new Scan(source);
  if (!optional || (await isFolder(folder))) await scan.run(folder);
  return { skills: scan.skills, problems: scan.problems };
}

class Scan {
  readonly skills: FoundSkill[] = [];
  readonly problems: Problem[] = [];
  readonly #source: string;
  readonly #seen = new Set<string>();

  constructor(source: string) {
    this.#source = source;
  }

  async run(folder: string): Promise<void> {
    if (!(await isFolder(folder))) {
      this.#problem(
        'not-found',
        `There is no folder ${folder}. Create it, or leave it out.`,
        folder,
      );
      return;
    }
    let level = [folder];
    for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth++) {
      const next = await Promise.all(level.map((path) => this.#look(path)));
      level = next.flat();
    }
    if (level.length > 0) {
      this.#problem(
        'too-deep',
        `${level.length} folders below ${folder} are deeper than ${MAX_DEPTH} and were not looked into.`,
        folder,
      );
    }
    this.skills.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** Takes a folder's skill, or gives the folders in it. */
  async #look(path: string): Promise<string[]> {
    let root: string;
    let entries: Dirent[];
    try {
      root = await realpath(path);
      if (this.#seen.has(root)) return [];
      this.#seen.add(root);
      if (this.#seen.size > MAX_FOLDERS) {
        if (this.#seen.size === MAX_FOLDERS + 1) {
          this.#problem(
            'too-many-folders',
            `More than ${MAX_FOLDERS} folders; the rest was not looked into. Name the skill folder itself.`,
            path,
          );
        }
        return [];
      }
      entries = await readdir(path, { withFileTypes: true });
    } catch (error) {
      this.#problem('unreadable', `${path} cannot be read: ${String(error)}`, path);
      return [];
    }
    const names = entries
      .map(({ name }) => name)
      .filter((name) => name.toLowerCase() === 'skill.md');
    const name = names.includes('SKILL.md') ? 'SKILL.md' : names.toSorted()[0];
    if (name !== undefined && (await this.#take(path, name))) return [];
    return this.#folders(path, entries);
  }

  async #take(path: string, name: string): Promise<boolean> {
    const file = join(path, name);
    const found = await stat(file, { bigint: true }).catch(() => undefined);
    if (found?.isFile() !== true) {
      this.#problem('dangling-link', `${file} leads nowhere. Mend the link.`, file);
      return false;
    }
    if (name !== 'SKILL.md')
      this.#problem('file-name-case', `${file} should be called SKILL.md.`, file);
    // A linked SKILL.md brings its own folder along.
    const home = dirname(await realpath(file));
    const stamp = [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':');
    this.skills.push({ path, root: home, file, stamp });
    return true;
  }

  async #folders(path: string, entries: readonly Dirent[]): Promise<string[]> {
    const folders: string[] = [];
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.name.startsWith('.') || IGNORED.has(entry.name)) continue;
      const child = join(path, entry.name);
      if (entry.isDirectory()) folders.push(child);
      if (!entry.isSymbolicLink()) continue;
      if (await isFolder(child)) folders.push(child);
      else if (!(await exists(child)))
        this.#problem('dangling-link', `${child} leads nowhere. Mend or remove the link.`, child);
    }
    return folders;
  }

  #problem(code: string, message: string, file: string): void {
    this.problems.push({ source: this.#source, code, severity: 'warning', message, file });
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** The name that a skill's folder has where it was found. */
export const folderName = ({ path }: FoundSkill): string => basename(path);
