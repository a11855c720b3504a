import {
  close,
  closeSync,
  constants,
  lstat,
  lstatSync,
  open,
  openSync,
  read,
  readdir,
  readdirSync,
  readSync,
  stat,
  statSync,
  type BigIntStats,
  type Dirent,
} from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';

export interface DiskOptions {
  /** What is read lies on a network or on a drive that is known to be slow: every call goes through the thread pool. */
  readonly slow?: boolean;
}

/** Others get their turn after so much work, in milliseconds. */
const SLICE_MS = 5;
/** A disk whose calls take longer than this is waited for elsewhere, in milliseconds: a local one takes a hundredth of it. */
const SLOW_CALL_MS = 0.5;
/** After so many calls it is tried again whether the disk is quick. */
const POOLED_CALLS = 64;
/** A drive that is away holds up who asks it first, and nobody else. */
const FIRST_CALLS = 1;
/** A named pipe without a writer does not hold up who opens it. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const STAT = { bigint: true, throwIfNoEntry: false } as const;
type Stats = BigIntStats | undefined;

const pooled = {
  readdir: promisify(readdir),
  lstat: promisify(lstat),
  stat: promisify(stat),
  open: promisify(open),
  read: promisify(read),
  close: promisify(close),
};

/**
 * The calls that a look at many small files makes. Where the disk is quick they are made at once, which costs a fraction of
 * a way through the thread pool, in slices of a few milliseconds between which everything else goes on. Where answers take
 * long, the thread pool waits for them. One for each look: what a disk is like may change.
 */
export class Disk {
  /** Calls that go through the thread pool before it is tried without. */
  #pooled: number;
  #began = performance.now();
  /** Calls of this slice, and how long they took. */
  #calls = 0;
  #spent = 0;
  #pause: Promise<void> | undefined;

  constructor({ slow = false }: DiskOptions = {}) {
    this.#pooled = slow ? Number.POSITIVE_INFINITY : FIRST_CALLS;
  }

  /** What is in a folder. */
  list(folder: string): Dirent[] | Promise<Dirent[]> {
    return this.#call(
      () => readdirSync(folder, { withFileTypes: true }),
      () => pooled.readdir(folder, { withFileTypes: true }),
    );
  }

  /** What is at a path, behind links; `undefined` if there is nothing that can be seen. */
  stat(path: string): Stats | Promise<Stats> {
    return this.#call(
      () => seen(() => statSync(path, STAT)),
      () => pooled.stat(path, STAT).catch(nothing),
    );
  }

  /** What is at a path itself, which may be a link; `undefined` if there is nothing that can be seen. */
  lstat(path: string): Stats | Promise<Stats> {
    return this.#call(
      () => seen(() => lstatSync(path, STAT)),
      () => pooled.lstat(path, STAT).catch(nothing),
    );
  }

  /**
   * The head of a file: at least `atLeast` bytes of it, or all of it. `size`: in bytes, as far as it is known.
   * @throws what opening and reading the file throws
   */
  async head(
    path: string,
    atLeast: number,
    size: number = atLeast,
  ): Promise<{ readonly bytes: Buffer; readonly complete: boolean }> {
    const file = await this.#call(
      () => openSync(path, FLAGS),
      () => pooled.open(path, FLAGS),
    );
    try {
      // One byte more than there should be: that it does not come says that the file ends.
      const buffer = Buffer.allocUnsafe(Math.min(atLeast, size) + 1);
      let length = 0;
      while (length < buffer.length) {
        const left = buffer.length - length;
        const at = length;
        const bytesRead = await this.#call(
          () => readSync(file, buffer, at, left, at),
          async () => (await pooled.read(file, buffer, at, left, at)).bytesRead,
        );
        length += bytesRead;
        if (bytesRead === 0 || (bytesRead < left && length >= size)) break;
      }
      if (length > size && size < atLeast) return await this.head(path, atLeast);
      return { bytes: buffer.subarray(0, Math.min(length, atLeast)), complete: length <= atLeast };
    } finally {
      await this.#call(
        () => closeSync(file),
        () => pooled.close(file),
      );
    }
  }

  #call<T>(now: () => T, later: () => Promise<T>): T | Promise<T> {
    if (this.#pooled > 0) {
      this.#pooled--;
      return later();
    }
    const begin = performance.now();
    if (this.#pause !== undefined || begin - this.#began > SLICE_MS) {
      this.#pause ??= this.#nextSlice();
      return this.#pause.then(() => this.#call(now, later));
    }
    try {
      return now();
    } finally {
      this.#calls++;
      this.#spent += performance.now() - begin;
    }
  }

  async #nextSlice(): Promise<void> {
    if (this.#spent > this.#calls * SLOW_CALL_MS) this.#pooled = POOLED_CALLS;
    await setImmediate();
    this.#pause = undefined;
    this.#began = performance.now();
    this.#calls = 0;
    this.#spent = 0;
  }
}

const nothing = (): undefined => undefined;

function seen(look: () => Stats): Stats {
  try {
    return look();
  } catch {
    return undefined;
  }
}
