import { readdir, realpath, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { isBelow, readConfined } from '@patchbay/files';
import {
  changeSource,
  PatchbayError,
  problemFrom,
  type Capability,
  type ChangeObservable,
  type ChangeSource,
  type CommandArguments,
  type CommandEntry,
  type CommandPrompt,
  type CommandResource,
  type CompileContext,
  type Problem,
} from '@patchbay/protocols';

import { readCommandDocument, type CommandDocument } from './command-document.ts';
import { substitute, type CommandDialect } from './substitute.ts';

export interface MarkdownCommandsOptions {
  /** The capability id. */
  readonly id: string;
  /** A folder of Markdown files; folders in it are namespaces: `git/commit.md` is `/git:commit`. */
  readonly folder: string;
  /** A folder that is not there is no problem: it may come. Default false. */
  readonly optional?: boolean;
  /** Whose files these are. Default: by the folder's name (`.claude`, `.opencode`, `.codex`, `.cursor`), else `patchbay`. */
  readonly dialect?: CommandDialect;
  /** Among several commands of one name the greatest is reached by it. Default 30, as for the files of a project. */
  readonly precedence?: number;
}

/** Slash commands from a folder of Markdown files: edits are seen when they are next listed or called. */
export function markdownCommands(
  options: MarkdownCommandsOptions,
): Capability & CommandResource & ChangeObservable {
  return new MarkdownCommands(options);
}

interface Known {
  readonly stamp: string;
  readonly document: CommandDocument | undefined;
  readonly problems: readonly Problem[];
}

const MAX_DEPTH = 5;
const MAX_FILES = 2_000;

class MarkdownCommands implements Capability, CommandResource, ChangeObservable {
  readonly id: string;
  readonly revision: () => number;
  readonly changes: ChangeSource['subscribe'];
  readonly #folder: string;
  readonly #dialect: CommandDialect;
  readonly #precedence: number;
  readonly #optional: boolean;
  /** By path, relative to the folder. */
  #known = new Map<string, Known>();

  constructor({ id, folder, dialect, precedence = 30, optional = false }: MarkdownCommandsOptions) {
    this.id = id;
    this.#folder = resolve(folder);
    this.#dialect = dialect ?? dialectOf(this.#folder);
    this.#precedence = precedence;
    this.#optional = optional;
    // Nothing watches the folder, whoever listens, so nothing can be vouched for: every listing looks at it.
    let asked = 0;
    this.revision = () => ++asked;
    this.changes = changeSource(id).subscribe;
  }

  async listCommands(context: CompileContext): Promise<readonly CommandEntry[]> {
    const { known, problems } = await this.#look();
    for (const problem of problems) context.report(problem);
    return [...known.values()].flatMap(({ document }) => document?.entry ?? []);
  }

  async getCommand(name: string, args: CommandArguments): Promise<CommandPrompt> {
    const { known } = await this.#look();
    const found = [...known.values()].find(
      ({ document }) => document?.entry.name === name,
    )?.document;
    if (found === undefined) {
      throw new PatchbayError(
        'not-found',
        `There is no command file for /${name} in ${this.#folder}.`,
        { source: this.id },
      );
    }
    const text = substitute(found.template, args, this.#dialect, found.names);
    return { messages: [{ role: 'user', content: [{ type: 'text', text }] }] };
  }

  /** What is there now. A file that did not change is not read again, and its entry stays the same object. */
  async #look(): Promise<{
    readonly known: ReadonlyMap<string, Known>;
    readonly problems: readonly Problem[];
  }> {
    const problems: Problem[] = [];
    const paths = await this.#paths(problems);
    const before = this.#known;
    const read = await Promise.all(
      paths.map(async (path) => [path, await this.#read(path, before.get(path))] as const),
    );
    this.#known = new Map(read.filter((item): item is [string, Known] => item[1] !== undefined));
    for (const { problems: found } of this.#known.values()) problems.push(...found);
    return { known: this.#known, problems };
  }

  async #read(path: string, before: Known | undefined): Promise<Known | undefined> {
    const file = join(this.#folder, path);
    try {
      const found = await stat(file, { bigint: true });
      const stamp = [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':');
      if (before?.stamp === stamp) return before;
      const document = readCommandDocument(await readConfined(this.#folder, path), {
        source: this.id,
        file,
        name: path.replace(/\.md$/i, '').split('/').join(':'),
        dialect: this.#dialect,
        precedence: this.#precedence,
      });
      if ('refused' in document)
        return { stamp, document: undefined, problems: [document.refused] };
      return { stamp, document, problems: document.problems };
    } catch (error) {
      // Removed since the folder was read.
      if (isMissing(error)) return undefined;
      return { stamp: '', document: undefined, problems: [problemFrom(this.id, error)] };
    }
  }

  /** Markdown files below the folder, sorted, relative, with `/`. */
  async #paths(problems: Problem[]): Promise<readonly string[]> {
    const found: string[] = [];
    const root = await realpath(this.#folder).catch(() => undefined);
    if (root === undefined) {
      if (!this.#optional) {
        problems.push(
          this.#problem(
            'not-found',
            `There is no folder ${this.#folder}. Create it, or leave it out.`,
          ),
        );
      }
      return [];
    }
    let level = [''];
    for (
      let depth = 0;
      depth <= MAX_DEPTH && level.length > 0 && found.length <= MAX_FILES;
      depth++
    ) {
      const next: string[] = [];
      for (const folder of level) {
        const real = await realpath(join(this.#folder, folder));
        if (!isBelow(root, real)) continue;
        const entries = await readdir(real, { withFileTypes: true });
        for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
          const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
          if (entry.name.startsWith('.')) continue;
          if (entry.isDirectory()) next.push(path);
          else if (/\.md$/i.test(entry.name)) found.push(path);
        }
      }
      level = next;
    }
    if (found.length > MAX_FILES) {
      problems.push(
        this.#problem(
          'too-many-files',
          `${this.#folder} has more than ${MAX_FILES} commands; the rest was left out.`,
        ),
      );
    }
    return found.slice(0, MAX_FILES);
  }

  #problem(code: string, message: string): Problem {
    return { source: this.id, code, severity: 'warning', message, file: this.#folder };
  }
}

function dialectOf(folder: string): CommandDialect {
  for (const dialect of ['claude', 'opencode', 'codex', 'cursor'] as const) {
    if (folder.split(/[\\/]/).includes(`.${dialect}`)) return dialect;
  }
  return 'patchbay';
}

function isMissing(error: unknown): boolean {
  return (
    (error as { readonly code?: unknown }).code === 'ENOENT' ||
    (PatchbayError.isInstance(error) && error.code === 'not-found')
  );
}
