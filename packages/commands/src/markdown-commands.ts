import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { FileWatcher, readConfined, type FileLook } from '@patchbay/files';
import {
  changeSource,
  PatchbayError,
  problemFrom,
  toPatchbayError,
  type Capability,
  type ChangeObservable,
  type CommandArguments,
  type CommandEntry,
  type CommandPrompt,
  type CommandResource,
  type CompileContext,
  type EmitChange,
  type Problem,
} from '@patchbay/protocols';

import { readCommandDocument, type CommandDocument } from './command-document.ts';
import { matters, scanCommands, type FolderScan, type FoundCommand } from './command-folder.ts';
import { dialectOf, type CommandDialect } from './dialect.ts';
import { fill } from './fill.ts';
import type { CommandHandlers } from './handlers.ts';

export interface MarkdownCommandsOptions extends CommandHandlers {
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
  /** `false`: what a link leads to outside of the folder is left out, with a problem. Default true. */
  readonly followLinks?: boolean;
}

/**
 * Slash commands from a folder of Markdown files. Whoever lists or calls them sees the files as they are; whoever listens to
 * changes is told of edits.
 */
export function markdownCommands(
  options: MarkdownCommandsOptions,
): Capability & CommandResource & ChangeObservable {
  return new MarkdownCommands(options);
}

/** A file as it was last read. */
interface Known {
  /** Of the file as it was found; absent if that was too short after its last change to tell whether another followed. */
  readonly stamp?: string;
  /** What was in it, as long as that is needed to tell whether it changed. */
  readonly bytes?: Buffer;
  /** Absent if it cannot be read, or is no command. */
  readonly document?: CommandDocument;
  readonly problems: readonly Problem[];
}

/** What a look gave. */
interface Seen {
  readonly scan: FolderScan;
  /** By the name of the command. */
  readonly documents: ReadonlyMap<string, CommandDocument>;
  readonly problems: readonly Problem[];
}

/** A drive may give no events and not say so: no look is believed for longer, whatever the watcher says. */
const BELIEVED_MS = 2_000;

/** File systems count time in steps: a file that changed this shortly before it was read may change unseen. */
const STAMP_STEP_MS = 50;

class MarkdownCommands implements Capability, CommandResource, ChangeObservable {
  readonly id: string;
  readonly revision: () => number;
  readonly changes: ChangeObservable['changes'];
  readonly #options: Required<Omit<MarkdownCommandsOptions, keyof CommandHandlers>>;
  readonly #handlers: CommandHandlers;
  /** By path, relative to the folder. */
  #known: ReadonlyMap<string, Known> = new Map();
  /** The last look, as a watcher understands it. */
  #last: FileLook | undefined;
  #watcher: FileWatcher | undefined;
  #revision = 0;
  /** When the last look began. */
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: MarkdownCommandsOptions) {
    const { id, optional = false, precedence = 30, followLinks = true } = options;
    const { runShell, readFile, dialect } = options;
    const folder = resolve(options.folder);
    this.id = id;
    this.#options = {
      id,
      folder,
      optional,
      precedence,
      followLinks,
      dialect: dialect ?? dialectOf(folder),
    };
    this.#handlers = {
      ...(runShell === undefined ? {} : { runShell }),
      ...(readFile === undefined ? {} : { readFile }),
    };
    // What cannot be vouched for differs at each question.
    this.revision = () => (this.#isCurrent() ? this.#revision : ++this.#revision);
    this.changes = changeSource(id, (emit) => this.#watch(emit)).subscribe;
  }

  async listCommands(context: CompileContext): Promise<readonly CommandEntry[]> {
    const { documents, problems } = await this.#look();
    for (const problem of problems) context.report(problem);
    if (this.#watcher?.problem !== undefined) context.report(this.#watcher.problem);
    return [...documents.values()].map(({ entry }) => entry);
  }

  async getCommand(
    name: string,
    args: CommandArguments,
    context: CompileContext,
  ): Promise<CommandPrompt> {
    const found = (await this.#look()).documents.get(name);
    if (found === undefined) {
      throw new PatchbayError(
        'not-found',
        `There is no command file for /${name} in ${this.#options.folder}.`,
        { source: this.id },
      );
    }
    const { template, file, entry } = found;
    const filled = { source: this.id, name, file, declared: entry.arguments ?? [] };
    const content = await fill(template, args, { ...filled, ...this.#handlers }, context);
    return { messages: [{ role: 'user', content }] };
  }

  #isCurrent(): boolean {
    return this.#watcher?.current === true && performance.now() - this.#lookedAt < BELIEVED_MS;
  }

  /** While somebody listens. The watcher's looks are the same as anybody's. */
  #watch(emit: EmitChange): () => void {
    const looked = this.#last !== undefined;
    const watcher = new FileWatcher({
      source: this.id,
      known: this.#last?.files,
      look: async () => lookOf((await this.#look()).scan),
      onChange: (changes) => {
        for (const { path } of changes) emit('commands_changed', pathToFileURL(path).href);
      },
    });
    this.#watcher = watcher;
    void watcher.start().then(() => {
      // Nobody had looked: what came since somebody listens cannot be told from what was there.
      if (!looked && this.#watcher === watcher) emit('commands_changed');
    });
    return () => {
      watcher.close();
      this.#watcher = undefined;
    };
  }

  /** What is there now. A file that did not change is not read again, and its entry stays the same object. */
  async #look(): Promise<Seen> {
    const { id, folder } = this.#options;
    const began = performance.now();
    const scan = await scanCommands(folder, { ...this.#options, source: id });
    const before = this.#known;
    const read = await Promise.all(
      scan.commands.map(
        async (found) => [found, await this.#read(found, before.get(found.path))] as const,
      ),
    );
    const known = new Map<string, Known>();
    const documents = new Map<string, CommandDocument>();
    const problems = [...scan.problems];
    for (const [{ path, file }, now] of read) {
      if (now === undefined) continue;
      known.set(path, now);
      problems.push(...now.problems);
      const { document } = now;
      const other = document && documents.get(document.entry.name);
      if (other !== undefined) problems.push(this.#twice(file, document!.entry.name, other.file));
      else if (document !== undefined) documents.set(document.entry.name, document);
    }
    this.#known = known;
    const look = lookOf(scan);
    if (!same(look.files, this.#last?.files)) this.#revision++;
    this.#last = look;
    this.#lookedAt = began;
    return { scan, documents, problems };
  }

  async #read(found: FoundCommand, before: Known | undefined): Promise<Known | undefined> {
    const { path, file, real, root, inside } = found;
    if (before?.stamp !== undefined && before.stamp === found.stamp) return before;
    const settled = Date.now() - found.changedAt > STAMP_STEP_MS;
    const { id: source, dialect, precedence } = this.#options;
    try {
      const bytes = await readConfined(root, inside);
      const mark = settled ? { stamp: found.stamp } : { bytes };
      if (before?.bytes?.equals(bytes) === true) {
        const { document, problems } = before;
        return { ...mark, problems, ...(document === undefined ? {} : { document }) };
      }
      const document = readCommandDocument(bytes, {
        ...this.#handlers,
        source,
        file,
        origin: real,
        name: nameOf(path),
        dialect,
        precedence,
      });
      if ('refused' in document) return { ...mark, problems: [document.refused] };
      return { ...mark, document, problems: document.problems };
    } catch (error) {
      // Removed since the folder was read.
      if (PatchbayError.isInstance(error) && error.code === 'not-found') return undefined;
      const { code, message } = toPatchbayError(error, 'source-failed');
      const said = `${file} cannot be read: ${message}`;
      const failure = new PatchbayError(code, said, { cause: error, details: { file } });
      return { problems: [problemFrom(source, failure)] };
    }
  }

  #twice(file: string, name: string, other: string): Problem {
    return {
      source: this.id,
      code: 'command-duplicate',
      severity: 'warning',
      file,
      message: `${file} would be /${name}, which ${other} is already; it is left out. Rename one of them.`,
    };
  }
}

/** `git/my commit.md` is `git:my-commit`: one word. */
function nameOf(path: string): string {
  return path
    .replace(/\.md$/i, '')
    .split('/')
    .map((part) => part.trim().replaceAll(/\s+/g, '-'))
    .join(':');
}

function lookOf({ commands, folders, ways }: FolderScan): FileLook {
  return {
    files: new Map(commands.map(({ file, stamp }) => [file, stamp])),
    folders: new Map(folders.map((folder) => [folder, matters])),
    ways,
  };
}

function same(
  now: ReadonlyMap<string, string>,
  before: ReadonlyMap<string, string> | undefined,
): boolean {
  return now.size === before?.size && [...now].every(([file, stamp]) => before.get(file) === stamp);
}
