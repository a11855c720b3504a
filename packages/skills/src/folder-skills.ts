import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

import { Disk, FileWatcher, type FileChange } from '@patchbay/files';
import {
  changeSource,
  PatchbayError,
  type Capability,
  type ChangeObservable,
  type CompileContext,
  type EmitChange,
  type OpenSkill,
  type Problem,
  type SkillEntry,
  type SkillResource,
} from '@patchbay/protocols';

import { SERVERS_FILE, statSkill, type FoundSkill } from './found-skill.ts';
import { mapBounded, MAX_OPEN } from './map-bounded.ts';
import { scanSkills, type ScanOptions } from './scan.ts';
import {
  areLost,
  FreeUris,
  isLost,
  lookOf,
  NOTHING,
  seenOf,
  urisOf,
  type Seen,
} from './seen-skills.ts';
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
  readonly poll?: number | undefined;
  readonly debounceMs?: number | undefined;
}

/** By so much the times of a file system may be behind the clock. */
const CLOCK_STEP_MS = 10;
/** A drive may give no events and not say so: no look at everything is believed for longer, whatever the watcher says. */
const BELIEVED_MS = 2_000;
/** Some editors remove a file before they write it anew: what is gone is looked for once more before it is. */
const REWRITE_MS = 50;

/**
 * Skills in folders. While somebody listens they are watched, and a look is believed until something happens; otherwise
 * every compile looks at them. Only what changed is read.
 */
export class FolderSkills implements Capability, SkillResource, ChangeObservable {
  readonly id: string;
  readonly revision: () => number;
  readonly changes: ChangeObservable['changes'];
  readonly #options: FolderSkillsOptions;
  readonly #reader: SkillReader;
  #seen = NOTHING;
  #revision = 0;
  /** When the last look at everything was done. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  #watcher: FileWatcher | undefined;
  /** URIs by SKILL.md, as they were when changes were last told. */
  #told: ReadonlyMap<string, string> | undefined;
  readonly #uris = new FreeUris();
  #looking: Promise<Seen> | undefined;
  #next: Promise<Seen> | undefined;

  constructor(options: FolderSkillsOptions) {
    this.id = options.id;
    this.#options = options;
    const { id, precedence, trusted, validate } = options;
    this.#reader = new SkillReader({ source: id, precedence, trusted, validate });
    // What cannot be vouched for differs at each question.
    this.revision = () => (this.#isCurrent() ? this.#revision : ++this.#revision);
    this.changes = changeSource(id, (emit) => this.#watch(emit)).subscribe;
  }

  async listSkills(context: CompileContext): Promise<readonly SkillEntry[]> {
    const { entries, problems } = this.#isCurrent() ? this.#seen : await this.#look();
    for (const problem of problems) context.report(problem);
    if (this.#watcher?.problem !== undefined) context.report(this.#watcher.problem);
    return entries;
  }

  #isCurrent(): boolean {
    return this.#watcher?.current === true && performance.now() - this.#lookedAt < BELIEVED_MS;
  }

  #watch(emit: EmitChange): () => void {
    const { id, poll, debounceMs } = this.#options;
    const looked = this.#lookedAt >= 0;
    this.#told = looked ? urisOf(this.#seen) : undefined;
    // Where nobody has looked before, what is written from now on is news all the same.
    const since = Date.now() - CLOCK_STEP_MS;
    const watcher = new FileWatcher({
      source: id,
      poll,
      debounceMs,
      known: looked ? lookOf(this.#seen).files : undefined,
      places: looked ? this.#seen.around : undefined,
      look: async (fired) => {
        const seen = await this.#look(fired);
        const first = this.#told === undefined;
        this.#told ??= urisOf(seen);
        return lookOf(seen, first ? since : undefined);
      },
      onChange: (changes) => this.#tell(changes, emit),
    });
    this.#watcher = watcher;
    void watcher.start();
    return () => {
      watcher.close();
      this.#watcher = undefined;
    };
  }

  /** One event for all of it, which names the skill if it is about a single one. */
  #tell(changes: readonly FileChange[], emit: EmitChange): void {
    const before = this.#told;
    const now = urisOf(this.#seen);
    this.#told = now;
    const about = ({ path }: FileChange) =>
      now.get(path) ?? before?.get(path) ?? pathToFileURL(path).href;
    const [first, ...others] = new Set(changes.map(about));
    emit('skills_changed', others.length === 0 ? first : undefined);
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
   * What is there now; `fired`: the paths at which alone something can be different. Callers that come while a look is under
   * way share the one after it: it has begun after they came, so that it sees what they have written.
   */
  #look(fired?: readonly string[]): Promise<Seen> {
    if (this.#looking === undefined) {
      const looking = this.#lookNow(fired).finally(() => {
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

  async #lookNow(fired?: readonly string[]): Promise<Seen> {
    const seen =
      (fired && (await this.#lookAt(fired))) ?? (await this.#lookAtAll(this.#seen.known));
    this.#seen = seen;
    this.#revision++;
    return seen;
  }

  /** The skills at these paths. `undefined` if something else than their text may be different. */
  async #lookAt(fired: readonly string[]): Promise<Seen | undefined> {
    const { known, around } = this.#seen;
    const wanted = new Set(fired);
    const places = ({ found }: KnownSkill) => [found.file, join(found.path, SERVERS_FILE)];
    const folders = new Set(fired.map((path) => dirname(path)));
    const again = known.filter(
      (item) => folders.has(item.found.path) && places(item).some((place) => wanted.delete(place)),
    );
    if (wanted.size > 0) return undefined;
    const disk = this.#disk();
    const read = new Map<KnownSkill, KnownSkill>();
    for (const item of again) {
      const found = await statSkill(item.found, true, disk);
      if (found === undefined) return undefined;
      read.set(item, await this.#reader.read(found, item.root, item, disk));
    }
    const now = known.map((item) => read.get(item) ?? item);
    return again.some((item) => isLost(item, read.get(item)))
      ? undefined
      : seenOf(now, around, this.#uris);
  }

  /** Whoever asks for polling has a drive that is far away. */
  #disk(): Disk {
    return new Disk({ slow: this.#options.poll !== undefined });
  }

  async #lookAtAll(before: readonly KnownSkill[], patient = true): Promise<Seen> {
    const { id, roots } = this.#options;
    const asked = await roots();
    const disk = this.#disk();
    const scans = await Promise.all(
      asked.roots.map(async (root) => {
        const scan = await scanSkills(root.folder, { ...this.#options, source: id, disk });
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
    const known = new Map(before.map((item) => [item.found.file, item]));
    const read = await mapBounded([...homes.values()], MAX_OPEN, ({ root, skill }) =>
      this.#reader.read(skill, root, known.get(skill.file), disk),
    );
    if (patient && (await areLost(before, read))) {
      await after(REWRITE_MS);
      return this.#lookAtAll(before, false);
    }
    this.#lookedAt = performance.now();
    // In the order of the roots, then of the paths: it decides which of two keeps a name.
    const order = new Map(asked.roots.map((root, i) => [root, i]));
    const sorted = read.toSorted(
      (a, b) => order.get(a.root)! - order.get(b.root)! || (a.found.path < b.found.path ? -1 : 1),
    );
    const folders = new Map(scans.flatMap((scan) => [...scan.folders]));
    const ways = [
      ...asked.roots.map(({ folder }) => folder),
      ...scans.flatMap(({ links }) => links),
    ];
    return seenOf(sorted, { folders, ways, problems }, this.#uris);
  }
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
