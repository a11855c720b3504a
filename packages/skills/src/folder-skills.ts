import { stat } from 'node:fs/promises';
import { sep } from 'node:path';

import {
  changeSource,
  PatchbayError,
  type Capability,
  type ChangeObservable,
  type CompileContext,
  type OpenSkill,
  type Problem,
  type SkillEntry,
  type SkillResource,
} from '@patchbay/protocols';

import { scanSkills, type FoundSkill, type ScanOptions } from './scan.ts';
import { listSkillFiles, readSkillFile } from './skill-files.ts';
import {
  SkillReader,
  type KnownSkill,
  type SkillReaderOptions,
  type SkillRoot,
} from './skill-reader.ts';

/** Where skills lie at the moment. */
export interface SkillRoots {
  readonly roots: readonly SkillRoot[];
  readonly problems: readonly Problem[];
}

export interface FolderSkillsOptions
  extends
    Pick<ScanOptions, 'optional' | 'nested' | 'followLinks'>,
    Omit<SkillReaderOptions, 'source'> {
  readonly id: string;
  /** Asked at each look. */
  readonly roots: () => SkillRoots | Promise<SkillRoots>;
}

/** What a look gave. */
interface Seen {
  readonly known: readonly KnownSkill[];
  readonly entries: readonly SkillEntry[];
  readonly byUri: ReadonlyMap<string, KnownSkill>;
  readonly problems: readonly Problem[];
}

/** Skills in folders. Nothing watches the folders: every compile looks at them, and reads what changed. */
export class FolderSkills implements Capability, SkillResource, ChangeObservable {
  readonly id: string;
  readonly revision: () => number;
  readonly changes: ChangeObservable['changes'];
  readonly #options: FolderSkillsOptions;
  readonly #reader: SkillReader;
  #seen: Seen = { known: [], entries: [], byUri: new Map(), problems: [] };
  /** Entries that have another URI because of their neighbours. */
  readonly #renamed = new WeakMap<SkillEntry, SkillEntry>();
  #looking: Promise<Seen> | undefined;
  #next: Promise<Seen> | undefined;

  constructor(options: FolderSkillsOptions) {
    this.id = options.id;
    this.#options = options;
    const { id, precedence, trusted, validate } = options;
    this.#reader = new SkillReader({ source: id, precedence, trusted, validate });
    // Nothing watches the folders, whoever listens: nothing can be vouched for.
    let asked = 0;
    this.revision = () => ++asked;
    this.changes = changeSource(options.id).subscribe;
  }

  async listSkills(context: CompileContext): Promise<readonly SkillEntry[]> {
    const { entries, problems } = await this.#look();
    for (const problem of problems) context.report(problem);
    return entries;
  }

  async skillExists(uri: string): Promise<boolean> {
    const known = this.#seen.byUri.get(uri);
    if (known !== undefined && (await isFile(known.found.file))) return true;
    return (await this.#look()).byUri.has(uri);
  }

  async openSkill(uri: string): Promise<OpenSkill | undefined> {
    const known = this.#seen.byUri.get(uri);
    // It may be another skill by now, or none: then it takes a look at everything.
    const open = known && (await this.#open(known, uri).catch(() => undefined));
    if (open !== undefined) return open;
    const now = (await this.#look()).byUri.get(uri);
    return now && this.#open(now, uri);
  }

  async #open(known: KnownSkill, uri: string): Promise<OpenSkill | undefined> {
    const { found } = known;
    const { document, digest } = await this.#reader.readWhole(known);
    if ('refused' in document)
      throw new PatchbayError('not-found', document.refused.message, { source: this.id });
    if (document.entry.name !== known.entry?.name) return undefined;
    return {
      entry:
        document.entry.uri === uri ? document.entry : Object.freeze({ ...document.entry, uri }),
      body: document.body,
      digest,
      folder: found.root,
      files: await listSkillFiles(found.root),
      readFile: (path, options) => readSkillFile(found.root, path, options),
    };
  }

  /**
   * What is there now. Callers that come while a look is under way share the one after it: it has begun after they came,
   * so that it sees what they have written.
   */
  #look(): Promise<Seen> {
    if (this.#looking === undefined) {
      const looking = this.#lookNow().finally(() => {
        if (this.#looking === looking) this.#looking = undefined;
      });
      this.#looking = looking;
      return looking;
    }
    const running = this.#looking;
    this.#next ??= running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.#look();
      });
    return this.#next;
  }

  async #lookNow(): Promise<Seen> {
    const { id, roots } = this.#options;
    const asked = await roots();
    const scans = await Promise.all(
      asked.roots.map(async (root) => {
        const scan = await scanSkills(root.folder, { ...this.#options, source: id });
        return { ...scan, found: scan.skills.map((skill) => ({ root, skill })) };
      }),
    );
    const problems = [...asked.problems, ...scans.flatMap((scan) => scan.problems)];
    const homes = new Map<string, { readonly root: SkillRoot; readonly skill: FoundSkill }>();
    for (const item of scans.flatMap(({ found }) => found)) {
      const first = homes.get(item.skill.root);
      if (first === undefined) homes.set(item.skill.root, item);
      else if (first.skill.path !== item.skill.path)
        problems.push(twice(id, item.skill, first.skill));
    }
    const before = new Map(this.#seen.known.map((known) => [known.found.file, known]));
    const read = await Promise.all(
      [...homes.values()].map(({ root, skill }) =>
        this.#reader.read(skill, root, before.get(skill.file)),
      ),
    );
    // In the order of the roots, then of the paths: it decides which of two keeps a name.
    const order = new Map(asked.roots.map((root, i) => [root, i]));
    const known = read.toSorted(
      (a, b) => order.get(a.root)! - order.get(b.root)! || (a.found.path < b.found.path ? -1 : 1),
    );
    const byUri = new Map<string, KnownSkill>();
    const entries: SkillEntry[] = [];
    for (const item of known) {
      if (item.entry === undefined) continue;
      const entry = this.#under(freeUri(item.entry.uri, item.found.path, byUri), item.entry);
      byUri.set(entry.uri, item);
      entries.push(entry);
    }
    this.#seen = {
      known,
      entries,
      byUri,
      problems: [...problems, ...read.flatMap((item) => item.problems)],
    };
    return this.#seen;
  }

  /** The same object for the same entry and URI. */
  #under(uri: string, entry: SkillEntry): SkillEntry {
    if (entry.uri === uri) return entry;
    const before = this.#renamed.get(entry);
    if (before?.uri === uri) return before;
    const renamed = Object.freeze({ ...entry, uri });
    this.#renamed.set(entry, renamed);
    return renamed;
  }
}

/** Two skills of one name in one source: the second is reached by as much of its path as tells it from the others. */
function freeUri(own: string, path: string, taken: ReadonlyMap<string, unknown>): string {
  if (!taken.has(own)) return own;
  const parts = path.split(sep).filter((part) => part !== '');
  const uris = parts.map((_, i) => {
    const way = parts
      .slice(-1 - i)
      .map(encodeURIComponent)
      .join('/');
    return `skill://${way}/SKILL.md`;
  });
  return uris.find((uri) => !taken.has(uri)) ?? own;
}

function twice(source: string, skill: FoundSkill, first: FoundSkill): Problem {
  return {
    source,
    code: 'skill-duplicate',
    severity: 'warning',
    message: `${skill.path} is the same skill as ${first.path}; it is listed once. Remove one of the links.`,
    file: skill.file,
  };
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
