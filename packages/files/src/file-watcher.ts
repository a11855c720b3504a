import { watch, type BigIntStats, type FSWatcher } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';

import type { Problem } from '@patchbay/protocols';

import { wayTo } from './ways.ts';

/** What a look at the files gave. */
export interface FileLook {
  /** Every file that counts, and a stamp that differs once it was changed or replaced (see {@link fileStamp}). */
  readonly files: ReadonlyMap<string, string>;
  /**
   * Every folder in which something may change, and which names in it matter. After a look at what fired alone, the same
   * object says that it is about the same folders.
   */
  readonly folders: ReadonlyMap<string, (name: string) => boolean>;
  /**
   * Every path that was entered by its name: what was to be looked at, whether it is there or not, and the links that were
   * followed. What would make one of them lead elsewhere is watched too.
   */
  readonly ways: readonly string[];
}

export interface FileChange {
  readonly kind: 'added' | 'changed' | 'removed';
  /** As the look calls it. */
  readonly path: string;
}

export interface FileWatcherOptions {
  /** Who has the problems: a capability id. */
  readonly source: string;
  /**
   * Looks at the files: what is there is what it says. `fired` are the paths at which something has happened since the last
   * look, if that is all that can be different; without it everything can be.
   */
  readonly look: (fired?: readonly string[]) => Promise<FileLook>;
  /** Told once for each batch of changes, with all of it, after the look that found it. */
  readonly onChange: (changes: readonly FileChange[]) => void;
  /** The files as they are known already: what is different at the first look is a change. Default: nothing is known. */
  readonly known?: ReadonlyMap<string, string> | undefined;
  /** Where the look was that `known` is of: watched at once, so that one look is enough to begin. */
  readonly places?: Pick<FileLook, 'folders' | 'ways'> | undefined;
  /** Looks this often, in milliseconds, and does not wait for events: network and Windows drives give none. Default: events. */
  readonly poll?: number | undefined;
  /** A batch ends when nothing happened for so long, in milliseconds, or after five times as long. Default 500. */
  readonly debounceMs?: number | undefined;
  /** Default: that of `node:fs`. */
  readonly watch?: typeof watch;
}

const DEBOUNCE_MS = 500;
const CEILING = 5;
/** Where the system has no more watches to give. */
const LIMITED_POLL_MS = 5_000;
const LIMITS: ReadonlySet<unknown> = new Set(['ENOSPC', 'EMFILE', 'ENFILE']);
/** Something is always on the move where folders change while they are being armed: the next batch takes it up. */
const MAX_ROUNDS = 4;

interface Armed {
  readonly watcher: FSWatcher;
  /** Device and inode of what is watched, where it was asked for: as long as nothing moves, nobody has to know. */
  readonly id: string | undefined;
}

/**
 * Tells that files changed. The events of the system only say "look": the look says what is there, and what differs from the
 * look before is announced. One watch for each folder that the look names, so that nothing below is watched that nobody
 * looks at; and what leads to those folders, so that one that vanishes, comes back or is exchanged is noticed.
 *
 * Nothing of it keeps the process alive.
 */
export class FileWatcher {
  readonly #options: FileWatcherOptions;
  readonly #armed = new Map<string, Armed>();
  #interest: ReadonlyMap<string, (name: string) => boolean> = new Map();
  /** The last look after which everything was watched. */
  #look: FileLook | undefined;
  /** As they were when changes were last told; before that, when they were first seen. */
  #files: ReadonlyMap<string, string> | undefined;
  /** Paths at which something happened since the last look; `undefined` as a member: nobody knows where. */
  #fired = new Set<string | undefined>();
  /** Folders may have been exchanged for others since they were armed. */
  #moved = false;
  #looking: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #deadline = 0;
  #poll: ReturnType<typeof setInterval> | undefined;
  #problem: Problem | undefined;
  /** Every folder is watched. */
  #complete = false;
  #busy = false;
  #closed = false;

  constructor(options: FileWatcherOptions) {
    this.#options = options;
    this.#files = options.known;
  }

  /**
   * Begins: unless its places are known, with a look at once. What is different from it is announced. Resolves when all is watched,
   * never rejects.
   */
  start(): Promise<void> {
    const { poll } = this.#options;
    if (poll !== undefined) this.#pollEvery(poll);
    this.#fired.add(undefined);
    return this.#next();
  }

  /** Whether the last look still holds, as far as the system tells: never while it polls. */
  get current(): boolean {
    return this.#complete && !this.#busy && this.#fired.size === 0;
  }

  /** `watch-limit`, while the system gives no more watches and the files are looked at from time to time instead. */
  get problem(): Problem | undefined {
    return this.#problem;
  }

  /** Ends at once. Nothing is announced any more. */
  close(): void {
    this.#closed = true;
    this.#complete = false;
    clearTimeout(this.#timer);
    clearInterval(this.#poll);
    for (const { watcher } of this.#armed.values()) watcher.close();
    this.#armed.clear();
  }

  /** One look after the other. */
  #next(): Promise<void> {
    this.#looking = this.#busy ? this.#looking.then(() => this.#run()) : this.#run();
    return this.#looking;
  }

  async #run(): Promise<void> {
    this.#busy = true;
    try {
      await this.#lookAgain();
    } catch {
      // It could not even look: whatever it was, everything may be different.
      this.#hear(undefined);
    } finally {
      this.#busy = false;
    }
  }

  async #lookAgain(): Promise<void> {
    let look: FileLook | undefined;
    const { places } = this.#options;
    if (this.#look === undefined && places !== undefined) await this.#arm(places);
    // Watches first, then the look that counts: nothing falls between. Mostly the watches are there already.
    for (let round = 0; ; round++) {
      if (this.#closed) return;
      if (round === MAX_ROUNDS) {
        this.#hear(undefined);
        break;
      }
      const fired = [...this.#fired].filter((path) => path !== undefined);
      const everything = round > 0 || this.#fired.has(undefined);
      this.#fired = new Set();
      look = await this.#options.look(everything ? undefined : fired);
      this.#files ??= look.files;
      if (!everything && look.folders === this.#look?.folders) break;
      if (this.#closed || !(await this.#arm(look))) break;
    }
    if (this.#closed || look === undefined) return;
    const changes = difference(this.#files ?? look.files, look.files);
    this.#look = look;
    this.#files = look.files;
    if (changes.length > 0) this.#options.onChange(changes);
  }

  /**
   * Watches what the look names, and nothing else. Whether a watch is new: also where it takes the place of another one, because
   * with that went what it had not told yet.
   */
  async #arm(look: Pick<FileLook, 'folders' | 'ways'>): Promise<boolean> {
    if (this.#options.poll !== undefined) return false;
    const interest = new Map(look.folders);
    for (const { folder, name } of (await Promise.all(look.ways.map(wayTo))).flat()) {
      const others = interest.get(folder);
      interest.set(folder, (one) => one === name || others?.(one) === true);
    }
    const moved = this.#moved;
    this.#moved = false;
    const ids = moved ? await idsOf(interest.keys()) : undefined;
    if (this.#closed) return false;
    this.#interest = interest;
    for (const [folder, { watcher, id }] of this.#armed) {
      if (interest.has(folder) && (ids === undefined || (id && ids.get(folder) === id))) continue;
      watcher.close();
      this.#armed.delete(folder);
    }
    return this.#watchAll(ids);
  }

  #watchAll(ids: ReadonlyMap<string, string> | undefined): boolean {
    let opened = false;
    let complete = true;
    let limit: unknown;
    for (const folder of this.#interest.keys()) {
      if (this.#armed.has(folder)) continue;
      try {
        this.#armed.set(folder, { watcher: this.#watch(folder), id: ids?.get(folder) });
        opened = true;
      } catch (error) {
        const { code } = error as { readonly code?: unknown };
        // Gone since it was seen: what led to it tells.
        if (code === 'ENOENT') continue;
        complete = false;
        limit = LIMITS.has(code) ? error : undefined;
        if (limit !== undefined) break;
      }
    }
    this.#complete = complete;
    if (limit === undefined) this.#endLimit();
    else this.#beginLimit(limit, this.#interest.size);
    return opened;
  }

  #watch(folder: string): FSWatcher {
    const open = this.#options.watch ?? watch;
    const watcher = open(folder, { persistent: false }, (event, name) => {
      if (event === 'rename') this.#moved = true;
      // Without a name it can be anything. Under its own name a folder tells that it was moved or removed itself.
      if (name === null || name === basename(folder)) this.#hear(undefined);
      else if (this.#interest.get(folder)?.(name) === true) this.#hear(join(folder, name));
    });
    watcher.on('error', () => {
      watcher.close();
      if (this.#armed.get(folder)?.watcher === watcher) this.#armed.delete(folder);
      this.#complete = false;
      this.#moved = true;
      this.#hear(undefined);
    });
    return watcher;
  }

  /** Waits until nothing more happens, but not for ever: a stream of changes must not starve those who listen. */
  #hear(path: string | undefined): void {
    if (this.#closed) return;
    this.#fired.add(path);
    const { debounceMs = DEBOUNCE_MS } = this.#options;
    const now = performance.now();
    if (this.#timer === undefined) this.#deadline = now + debounceMs * CEILING;
    clearTimeout(this.#timer);
    const wait = Math.max(0, Math.min(debounceMs, this.#deadline - now));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#next();
    }, wait);
    this.#timer.unref();
  }

  #beginLimit(error: unknown, wanted: number): void {
    if (this.#problem !== undefined) return;
    const { code } = error as { readonly code?: unknown };
    this.#problem = Object.freeze({
      source: this.#options.source,
      code: 'watch-limit',
      severity: 'warning',
      message: `The system gives no more file watches (${String(code)}; ${wanted} folders are to be watched): edits are looked for every ${LIMITED_POLL_MS / 1000} s instead. Raise its limit (on Linux fs.inotify.max_user_watches), or watch fewer folders.`,
    });
    this.#pollEvery(LIMITED_POLL_MS);
  }

  #endLimit(): void {
    if (this.#problem === undefined) return;
    this.#problem = undefined;
    clearInterval(this.#poll);
  }

  #pollEvery(ms: number): void {
    let waiting = false;
    this.#poll = setInterval(() => {
      // A slow disk: one look at a time, and none in store.
      if (waiting) return;
      waiting = true;
      this.#moved = true;
      this.#fired.add(undefined);
      void this.#next().finally(() => (waiting = false));
    }, ms);
    this.#poll.unref();
  }
}

/** Device and inode of each folder that is there. */
async function idsOf(folders: Iterable<string>): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>();
  await Promise.all(
    [...folders].map(async (folder) => {
      const found = await stat(folder, { bigint: true }).catch(() => undefined);
      if (found?.isDirectory() === true) ids.set(folder, `${found.dev}:${found.ino}`);
    }),
  );
  return ids;
}

function difference(
  before: ReadonlyMap<string, string>,
  now: ReadonlyMap<string, string>,
): readonly FileChange[] {
  const changes: FileChange[] = [];
  for (const [path, stamp] of now) {
    const known = before.get(path);
    if (known === undefined) changes.push({ kind: 'added', path });
    else if (known !== stamp) changes.push({ kind: 'changed', path });
  }
  for (const path of before.keys()) if (!now.has(path)) changes.push({ kind: 'removed', path });
  return changes;
}

/** Differs once a file was changed or replaced, as far as its file system can tell. Of `stat` with `bigint: true`. */
export function fileStamp({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
