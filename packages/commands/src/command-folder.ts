import type { Dirent } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';

import { fileStamp, isBelow } from '@patchbay/files';
import type { Problem } from '@patchbay/protocols';

/** A Markdown file below a folder of commands. */
export interface FoundCommand {
  /** Relative to the folder, with `/`: what the command is called by. */
  readonly path: string;
  /** As it was reached. */
  readonly file: string;
  /** Where it lies. */
  readonly real: string;
  /** The real folder that reading it must not leave, and its place in there. */
  readonly root: string;
  readonly inside: string;
  /** Differs when it was changed or replaced. */
  readonly stamp: string;
  /** When it was changed, in milliseconds. */
  readonly changedAt: number;
}

export interface FolderScan {
  /** In the order of their paths. */
  readonly commands: readonly FoundCommand[];
  /** Every folder that was looked into, as it was reached. */
  readonly folders: readonly string[];
  /** What was entered by its name: the folder itself, and links. */
  readonly ways: readonly string[];
  readonly problems: readonly Problem[];
}

export interface FolderScanOptions {
  /** Who has the problems: a capability id. */
  readonly source: string;
  /** A folder that is not there is no problem. */
  readonly optional: boolean;
  /** `false`: what a link leads to outside of the folder is left out, and said. */
  readonly followLinks: boolean;
}

const MAX_DEPTH = 5;
const MAX_FOLDERS = 2_000;
const MAX_FILES = 2_000;

/** Whether something of this name in a folder of commands can matter. */
export const matters = (name: string): boolean => !name.startsWith('.') && name !== 'node_modules';

/**
 * Finds Markdown files below a folder: bounded, in the order of names. Hidden folders and installed packages are left out.
 * Links are followed, to Markdown files and to folders, each real folder once.
 */
export async function scanCommands(
  folder: string,
  options: FolderScanOptions,
): Promise<FolderScan> {
  const scan = new Scan(folder, options);
  await scan.run();
  return {
    commands: scan.commands.toSorted((a, b) => compare(a.path, b.path)),
    folders: scan.folders,
    ways: scan.ways,
    problems: scan.problems,
  };
}

/** A folder that is to be looked into. */
interface Waiting {
  /** Relative to the folder of commands, with `/`; empty for that folder itself. */
  readonly path: string;
  readonly at: string;
  /** The real folder that reads from it stay in; `undefined` where a link begins a new one. */
  readonly root: string | undefined;
}

class Scan {
  readonly commands: FoundCommand[] = [];
  readonly folders: string[] = [];
  readonly ways: string[];
  readonly problems: Problem[] = [];
  readonly #folder: string;
  readonly #options: FolderScanOptions;
  readonly #seen = new Set<string>();
  #top = '';

  constructor(folder: string, options: FolderScanOptions) {
    this.#folder = folder;
    this.#options = options;
    this.ways = [folder];
  }

  async run(): Promise<void> {
    const found = await stat(this.#folder).catch(() => undefined);
    if (found?.isDirectory() !== true) {
      if (this.#options.optional && found === undefined) return;
      this.#say('not-found', `There is no folder ${this.#folder}. Create it, or leave it out.`);
      return;
    }
    this.#top = await realpath(this.#folder);
    let level: readonly Waiting[] = [{ path: '', at: this.#folder, root: undefined }];
    for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth++) {
      const next: Waiting[] = [];
      // One after the other: which way of two to a folder counts does not depend on the disk. Own folders before links.
      for (const waiting of level) next.push(...(await this.#look(waiting)));
      level = [
        ...next.filter(({ root }) => root !== undefined),
        ...next.filter(({ root }) => root === undefined),
      ];
    }
    if (level.length > 0)
      this.#say(
        'too-deep',
        `${level.length} folders below ${this.#folder} are deeper than ${MAX_DEPTH} and were not looked into. Move them up.`,
      );
    if (this.commands.length > MAX_FILES) {
      this.commands.length = MAX_FILES;
      this.#say(
        'too-many-files',
        `${this.#folder} has more than ${MAX_FILES} commands; the rest was left out. Split it into several folders.`,
      );
    }
  }

  async #look({ path, at, root }: Waiting): Promise<readonly Waiting[]> {
    try {
      const real = await realpath(at);
      if (this.#seen.has(real)) return [];
      if (this.#seen.size >= MAX_FOLDERS) {
        this.#say('too-many-folders', `More than ${MAX_FOLDERS} folders; ${at} was left out.`, at);
        return [];
      }
      this.#seen.add(real);
      this.folders.push(at);
      const next: Waiting[] = [];
      for (const entry of (await readdir(at, { withFileTypes: true })).toSorted(byName)) {
        const { name } = entry;
        if (!matters(name)) continue;
        const child = { path: path === '' ? name : `${path}/${name}`, at: join(at, name) };
        if (entry.isDirectory()) next.push({ ...child, root: root ?? real });
        else if (entry.isSymbolicLink()) next.push(...(await this.#follow(child)));
        else if (isMarkdown(name)) await this.#add(child, root ?? real, join(real, name));
      }
      return next;
    } catch (error) {
      // Removed since it was seen: it is not there.
      if (codeOf(error) !== 'ENOENT')
        this.#say('unreadable', `${at} cannot be read (${codeOf(error)}). Mend its rights.`, at);
      return [];
    }
  }

  async #follow(link: Omit<Waiting, 'root'>): Promise<readonly Waiting[]> {
    this.ways.push(link.at);
    const found = await stat(link.at).catch(() => undefined);
    if (found === undefined) {
      const message = `${link.at} leads nowhere. Mend or remove the link.`;
      if (isMarkdown(link.at)) this.#say('dangling-link', message, link.at);
      return [];
    }
    if (!found.isDirectory() && !isMarkdown(link.at)) return [];
    const real = await realpath(link.at);
    if (!this.#options.followLinks && !isBelow(this.#top, real)) {
      const message = `${link.at} is a link that leads out of the folder, and was left out. Copy what it leads to, or allow links.`;
      this.#say('link-refused', message, link.at);
      return [];
    }
    if (found.isDirectory()) return [{ ...link, root: undefined }];
    // Only what is meant to be a text: a link may be anybody's idea of where a key lies.
    if (isMarkdown(real)) await this.#add(link, dirname(real), real);
    else {
      const message = `${link.at} is a link to ${basename(real)}, which is no Markdown file, and was left out.`;
      this.#say('link-refused', message, link.at);
    }
    return [];
  }

  async #add({ path, at }: Omit<Waiting, 'root'>, root: string, real: string): Promise<void> {
    const found = await stat(real, { bigint: true }).catch(() => undefined);
    if (found?.isFile() !== true) return;
    const inside = relative(root, real);
    const changedAt = Number(found.ctimeMs);
    this.commands.push({ path, file: at, real, root, inside, stamp: fileStamp(found), changedAt });
  }

  #say(code: string, message: string, file = this.#folder): void {
    this.problems.push({ source: this.#options.source, code, severity: 'warning', message, file });
  }
}

const isMarkdown = (name: string): boolean => /\.md$/i.test(name);
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
const byName = (a: Dirent, b: Dirent): number => compare(a.name, b.name);
const codeOf = (error: unknown): string => String((error as { readonly code?: unknown }).code);
