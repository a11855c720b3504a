import type { Dirent } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';

import { isBelow, type Disk } from '@patchbay/files';
import type { Problem } from '@patchbay/protocols';

import {
  inFolder,
  isSkillFile,
  SERVERS_FILE,
  SKILL_FILE,
  skillAt,
  statSkill,
  type FoundSkill,
} from './found-skill.ts';
import { mapBounded, MAX_OPEN } from './map-bounded.ts';

export interface ScanResult {
  readonly skills: readonly FoundSkill[];
  readonly problems: readonly Problem[];
  /** Every folder that was looked into, and the names in it on which the result depends. */
  readonly folders: ReadonlyMap<string, (name: string) => boolean>;
  /** Links that were met, followed or not. */
  readonly links: readonly string[];
}

export interface ScanOptions {
  /** Who has the problems: a capability id. */
  readonly source: string;
  /** A folder that is not there is no problem. */
  readonly optional: boolean;
  /** Whether skills below a skill's folder are skills too: its direct children, and those of `skills` and `sub-skills`. */
  readonly nested: boolean;
  /** `false`: what a link leads to outside of the folder is left out, and said. */
  readonly followLinks: boolean;
  readonly disk: Disk;
}

const MAX_DEPTH = 5;
const MAX_FOLDERS = 2_000;
const IGNORED: ReadonlySet<string> = new Set(['node_modules', '__pycache__']);
/** Below a skill: its own material, which may hold a SKILL.md that is none (a template, a fixture). */
const MATERIAL = /^(?:references?|assets|scripts|examples?|templates|fixtures|tests?(?:[-_].*)?)$/i;
const GROUPS: ReadonlySet<string> = new Set(['skills', 'sub-skills']);

/**
 * Finds skills below a folder: breadth first, in order of names, bounded. A skill's folder is not looked into, unless
 * `nested`: what is below it is its own. Hidden folders and installed packages are left out. Links are followed; a skill
 * that is reached twice is found twice, with the same `root`.
 */
export async function scanSkills(folder: string, options: ScanOptions): Promise<ScanResult> {
  const scan = new Scan(options);
  await scan.run(folder);
  return scan;
}

/** A folder that is to be looked at. */
interface Waiting {
  readonly path: string;
  /** Its real path, where it is known. */
  readonly real?: string;
  /** Lies in a skill's folder: looked at for a SKILL.md; `group` also for folders in it. */
  readonly within?: 'skill' | 'group';
}

/** What was found in it. */
interface Looked extends Waiting {
  readonly root: string;
  readonly folders: readonly Waiting[];
  readonly skill: FoundSkill | undefined;
  readonly problems: readonly Problem[];
}

class Scan implements ScanResult {
  readonly skills: FoundSkill[] = [];
  readonly problems: Problem[] = [];
  readonly folders = new Map<string, (name: string) => boolean>();
  readonly links: string[] = [];
  readonly #options: ScanOptions;
  /** Real folders. */
  readonly #seen = new Set<string>();
  #top = '';
  /** Every folder is listed: in each there may be other skills, or its names in any case are the same. */
  #listed: boolean;

  constructor(options: ScanOptions) {
    this.#options = options;
    this.#listed = options.nested;
  }

  async run(folder: string): Promise<void> {
    const top =
      (await kindOf(folder)) === 'folder' ? await realpath(folder).catch(none) : undefined;
    if (top === undefined) {
      if (this.#options.optional) return;
      const message = `There is no folder ${folder}. Create it, or leave it out.`;
      this.problems.push(this.#problem('not-found', message, folder));
      return;
    }
    this.#top = top;
    let level: readonly Waiting[] = [{ path: folder }];
    for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth++)
      level = await this.#descend(level);
    if (level.length === 0) return;
    const message = `${level.length} folders below ${folder} are deeper than ${MAX_DEPTH} and were not looked into. Name the folder above them itself.`;
    this.problems.push(this.#problem('too-deep', message, folder));
  }

  /** Looks at all of them at once, then takes them in order: the result does not depend on which disk was faster. */
  async #descend(level: readonly Waiting[]): Promise<readonly Waiting[]> {
    const left = MAX_FOLDERS - this.#seen.size;
    if (level.length > left) {
      const message = `More than ${MAX_FOLDERS} folders; the rest was not looked into. Name the skill folders themselves.`;
      this.problems.push(this.#problem('too-many-folders', message, level[left]!.path));
    }
    const next: Waiting[] = [];
    const all = await mapBounded(level.slice(0, left), MAX_OPEN, (one) => this.#look(one));
    for (const looked of all) {
      if (looked !== undefined) next.push(...this.#take(looked));
    }
    return level.length > left ? [] : next;
  }

  #take(looked: Looked): readonly Waiting[] {
    const { skill, root, within, path } = looked;
    if (this.#seen.has(root)) {
      if (skill !== undefined) this.skills.push(skill);
      return [];
    }
    if (!this.#options.followLinks && !isBelow(this.#top, skill?.root ?? root)) {
      const message = `${path} is a link that leads out of the folder, and was left out. Copy what it leads to, or allow links.`;
      this.problems.push(this.#problem('link-refused', message, path));
      return [];
    }
    this.#seen.add(root);
    this.problems.push(...looked.problems);
    const whole = skill === undefined || this.#options.nested;
    this.folders.set(path, whole ? isListed : isOfSkill);
    if (skill === undefined) return within === 'skill' ? [] : looked.folders;
    this.skills.push(skill);
    // A linked SKILL.md is edited where it lies.
    if (skill.root !== root) this.folders.set(skill.root, isOfSkill);
    if (!whole) return [];
    return looked.folders;
  }

  async #look(waiting: Waiting): Promise<Looked | undefined> {
    const { path, within } = waiting;
    try {
      const root = waiting.real ?? (await realpath(path));
      const { disk, nested } = this.#options;
      const plain = this.#listed ? undefined : await this.#plainSkill(path, root);
      if (plain !== undefined) return { root, folders: [], skill: plain, problems: [], ...waiting };
      const entries = await disk.list(path);
      const problems: Problem[] = [];
      const skill = await this.#skillOf({ path, root }, entries, problems);
      if (skill !== undefined && !nested) return { root, folders: [], skill, problems, ...waiting };
      const found = await this.#folders(path, entries, skill === undefined ? problems : []);
      const inSkill = skill !== undefined || within !== undefined;
      const folders = found
        .filter(({ name }) => !inSkill || !MATERIAL.test(name))
        .map(({ name, own }): Waiting => ({
          path: inFolder(path, name),
          ...(own ? { real: inFolder(root, name) } : {}),
          ...(inSkill ? { within: GROUPS.has(name) ? 'group' : 'skill' } : {}),
        }));
      return { root, folders, skill, problems, ...waiting };
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      this.problems.push(this.#problem('unreadable', `${path} cannot be read: ${said}`, path));
      return undefined;
    }
  }

  /**
   * The skill of a folder that has an ordinary file SKILL.md, without a list of what is in it: most folders of skills are
   * that, and a list takes longer than all else. `undefined`: only a list tells. So it is where names in any case are
   * the same, because then the file may be called otherwise.
   */
  async #plainSkill(path: string, root: string): Promise<FoundSkill | undefined> {
    const file = inFolder(path, SKILL_FILE);
    const looked = this.#options.disk.lstats([
      file,
      inFolder(path, SKILL_FILE.toLowerCase()),
      inFolder(root, SERVERS_FILE),
    ]);
    const [found, alike, beside] = looked instanceof Promise ? await looked : looked;
    if (alike !== undefined && found !== undefined) this.#listed = true;
    if (alike !== undefined || found?.isFile() !== true || beside?.isSymbolicLink() === true)
      return undefined;
    return skillAt({ path, root, file }, found, beside);
  }

  /** SKILL.md in any case, the exact one first. */
  async #skillOf(
    { path, root }: { readonly path: string; readonly root: string },
    entries: readonly Dirent[],
    problems: Problem[],
  ): Promise<FoundSkill | undefined> {
    const files = entries.filter((entry) => isSkillFile(entry.name));
    const entry =
      files.find(({ name }) => name === SKILL_FILE) ??
      files.toSorted((a, b) => compare(a.name, b.name))[0];
    if (entry === undefined) return undefined;
    const file = inFolder(path, entry.name);
    const link = entry.isSymbolicLink();
    if (link) this.links.push(file);
    // A linked SKILL.md brings its own folder along; one that is not called so might bring anything, a home folder say.
    const real = link ? await realpath(file).catch(none) : inFolder(root, entry.name);
    if (real !== undefined && !isSkillFile(basename(real))) {
      const message = `${file} is a link to ${basename(real)}, which is no SKILL.md, and was left out. Link the folder instead.`;
      problems.push(this.#problem('link-refused', message, file));
      return undefined;
    }
    const beside = link || entries.some(({ name }) => name === SERVERS_FILE);
    const skill =
      real === undefined
        ? undefined
        : await statSkill({ path, root: dirname(real), file }, beside, this.#options.disk);
    if (skill === undefined) {
      problems.push(
        this.#problem('dangling-link', `${file} leads to no file. Mend the link.`, file),
      );
      return undefined;
    }
    if (entry.name !== SKILL_FILE) {
      const message = `${file} should be called SKILL.md: other programs do not find it. Rename it.`;
      problems.push(this.#problem('file-name-case', message, file));
    }
    return skill;
  }

  /** Names of the folders in a folder, linked ones last: what is reached both ways is known by its own path. */
  async #folders(
    path: string,
    entries: readonly Dirent[],
    problems: Problem[],
  ): Promise<readonly { readonly name: string; readonly own: boolean }[]> {
    const sorted = entries
      .filter(({ name }) => isListed(name))
      .toSorted((a, b) => compare(a.name, b.name));
    const own = sorted.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const links = sorted.filter((entry) => entry.isSymbolicLink()).map(({ name }) => name);
    const kinds = await Promise.all(links.map((name) => kindOf(inFolder(path, name))));
    for (const [i, name] of links.entries()) {
      const link = inFolder(path, name);
      this.links.push(link);
      if (kinds[i] === 'nothing') {
        const message = `${link} leads nowhere. Mend or remove the link.`;
        problems.push(this.#problem('dangling-link', message, link));
      } else if (kinds[i] === 'skill-file' && !isSkillFile(name)) {
        const message = `${link} leads to a file; a skill is a folder. Link the folder of that file.`;
        problems.push(this.#problem('not-a-folder', message, link));
      }
    }
    return [
      ...own.map((name) => ({ name, own: true })),
      ...links.filter((_, i) => kinds[i] === 'folder').map((name) => ({ name, own: false })),
    ];
  }

  #problem(code: string, message: string, file: string): Problem {
    return { source: this.#options.source, code, severity: 'warning', message, file };
  }
}

async function kindOf(path: string): Promise<'folder' | 'skill-file' | 'file' | 'nothing'> {
  try {
    if ((await stat(path)).isDirectory()) return 'folder';
    return isSkillFile(basename(await realpath(path))) ? 'skill-file' : 'file';
  } catch {
    return 'nothing';
  }
}

const none = (): undefined => undefined;
const isListed = (name: string): boolean => !name.startsWith('.') && !IGNORED.has(name);
const isOfSkill = (name: string): boolean => isSkillFile(name) || name === SERVERS_FILE;
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
