import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

import { localSkills, type LocalSkillsOptions } from '@patchbay/skills/node';
import { expect } from 'vitest';

import { loneContext } from './bench-folder.ts';

/** A project with a folder of skills in it, which somebody watches. */
export class Project implements AsyncDisposable {
  readonly base: string;
  /** Of the skills; may not be there yet. */
  root: string;
  readonly #end = new AbortController();
  #source: ReturnType<typeof localSkills> | undefined;
  #events: AsyncIterator<{ readonly sourceUri?: string }> | undefined;

  private constructor(base: string) {
    this.base = base;
    this.root = join(base, 'p/.agents/skills');
  }

  static async make(missing = false): Promise<Project> {
    const base = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-watching-')));
    const project = new Project(base);
    await mkdir(missing ? join(base, 'p') : project.root, { recursive: true });
    return project;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await rm(this.base, { recursive: true, force: true });
  }

  /** Below the skills, or with a leading `~` below the base. */
  at(path: string): string {
    return path.startsWith('~') ? join(this.base, path.slice(1)) : join(this.root, path);
  }

  async skill(path: string, text = 'one', name = basename(path)): Promise<void> {
    const folder = this.at(path);
    await mkdir(join(folder, 'references'), { recursive: true });
    await mkdir(join(folder, 'scripts'), { recursive: true });
    await writeFile(join(folder, 'SKILL.md'), skillText(name, text));
    await writeFile(join(folder, 'references/a.md'), 'a');
  }

  write(path: string, text: string): Promise<void> {
    return writeFile(this.at(path), text);
  }

  /** An editor that writes a new file and renames it over the old one. */
  async replace(path: string, text: string): Promise<void> {
    await this.write(`${path}/.SKILL.md.tmp`, skillText(basename(path), text));
    await rename(this.at(`${path}/.SKILL.md.tmp`), this.at(`${path}/SKILL.md`));
  }

  rename(from: string, to: string): Promise<void> {
    return rename(this.at(from), this.at(to));
  }

  remove(path: string): Promise<void> {
    return rm(this.at(path), { recursive: true });
  }

  async link(target: string, path: string): Promise<void> {
    await mkdir(dirname(this.at(path)), { recursive: true });
    await symlink(this.at(target), this.at(path));
  }

  /** Begins to watch; everything is watched when it is resolved. */
  async watch(options: Partial<LocalSkillsOptions> = {}): Promise<void> {
    this.#source = localSkills({ id: 'mine', folder: this.root, optional: true, ...options });
    await this.list();
    this.#events = this.#source.changes(this.#end.signal)[Symbol.asyncIterator]();
    await expect.poll(() => this.isCurrent(), { interval: 5, timeout: 10_000 }).toBe(true);
  }

  /** What is there, as the watched source says it: name and description. */
  async list(): Promise<Readonly<Record<string, string>>> {
    return describeSkills(await this.#source!.listSkills(loneContext()));
  }

  /** Codes of the problems that it has. */
  async problems(): Promise<readonly string[]> {
    const context = loneContext();
    await this.#source!.listSkills(context);
    return context.codes;
  }

  /** Whether the source vouches for what it said last. */
  isCurrent(): boolean {
    return this.#source!.revision() === this.#source!.revision();
  }

  open(name: string) {
    return this.#source!.openSkill(`skill://${name}/SKILL.md`, loneContext());
  }

  async event(): Promise<string | undefined> {
    const { value } = await this.#events!.next();
    return (value as { readonly sourceUri?: string } | undefined)?.sourceUri;
  }

  /** Waits for events until what is listed is this; the URIs that they named. */
  async until(
    expected: Readonly<Record<string, string>>,
  ): Promise<readonly (string | undefined)[]> {
    const uris: (string | undefined)[] = [];
    do uris.push(await this.event());
    while (JSON.stringify(await this.list()) !== JSON.stringify(sorted(expected)));
    // A fresh look at the disk says the same.
    const fresh = localSkills({ id: 'fresh', folder: this.root, optional: true });
    expect(describeSkills(await fresh.listSkills(loneContext()))).toEqual(expected);
    return uris;
  }
}

export const skillText = (name: string, text: string) =>
  `---\nname: ${name}\ndescription: ${text}\n---\n# ${name}\n`;
const sorted = (map: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
const describeSkills = (
  entries: readonly { readonly name: string; readonly description: string }[],
) => sorted(Object.fromEntries(entries.map(({ name, description }) => [name, description])));

/** Watches of this process, where the system counts them. */
export function watches(): number {
  let count = 0;
  for (const descriptor of readdirSync('/proc/self/fd')) {
    try {
      if (readlinkSync(`/proc/self/fd/${descriptor}`) !== 'anon_inode:inotify') continue;
      const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8');
      count += info.match(/^inotify wd/gm)?.length ?? 0;
    } catch {
      // Closed meanwhile.
    }
  }
  return count;
}
