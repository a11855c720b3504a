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

/** To open a file, to read it and to close it. */
const CALLS_OF_READ = 3;
const STAT = { bigint: true, throwIfNoEntry: false } as const;

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
      1,
      () => readdirSync(folder, { withFileTypes: true }),
      () => pooled.readdir(folder, { withFileTypes: true }),
    );
  }

  /** What is at a path, behind links; `undefined` if there is nothing that can be seen. */
  stat(path: string): BigIntStats | undefined | Promise<BigIntStats | undefined> {
    return this.#call(
      1,
      () => statNow(path),
      () => pooled.stat(path, STAT).catch(nothing),
    );
  }

  /** What is at each of these paths itself, which may be a link; `undefined` where there is nothing that can be seen. */
  lstats(
    paths: readonly string[],
  ): readonly (BigIntStats | undefined)[] | Promise<readonly (BigIntStats | undefined)[]> {
    return this.#call(
      paths.length,
      () => paths.map(lstatNow),
      () => Promise.all(paths.map((path) => pooled.lstat(path, STAT).catch(nothing))),
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
    // One byte more than there should be: that it does not come says that the file ends.
    const most = Math.min(atLeast, size) + 1;
    const head = this.#call(
      CALLS_OF_READ,
      () => readNow(path, most, size),
      () => readLater(path, most, size),
    );
    const bytes = head instanceof Promise ? await head : head;
    if (bytes.length > size && size < atLeast) return this.head(path, atLeast);
    return {
      bytes: bytes.length > atLeast ? bytes.subarray(0, atLeast) : bytes,
      complete: bytes.length <= atLeast,
    };
  }

  /** `calls`: of the system, that it is made of. */
  #call<T>(calls: number, now: () => T, later: () => Promise<T>): T | Promise<T> {
    if (this.#pooled > 0) {
      this.#pooled -= calls;
      return later();
    }
    const begin = performance.now();
    if (this.#pause !== undefined || begin - this.#began > SLICE_MS) {
      this.#pause ??= this.#nextSlice();
      return this.#pause.then(() => this.#call(calls, now, later));
    }
    try {
      return now();
    } finally {
      this.#calls += calls;
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

function statNow(path: string): BigIntStats | undefined {
  try {
    return statSync(path, STAT);
  } catch {
    return undefined;
  }
}

function lstatNow(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, STAT);
  } catch {
    return undefined;
  }
}

/** At most `most` bytes from the begin; what is not there although the file has `size` bytes may still come. */
function readNow(path: string, most: number, size: number): Buffer {
  const file = openSync(path, FLAGS);
  try {
    const buffer = Buffer.allocUnsafe(most);
    let length = 0;
    let got;
    do {
      got = readSync(file, buffer, length, most - length, length);
      length += got;
    } while (got > 0 && length < Math.min(most, size));
    return buffer.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

async function readLater(path: string, most: number, size: number): Promise<Buffer> {
  const file = await pooled.open(path, FLAGS);
  try {
    const buffer = Buffer.allocUnsafe(most);
    let length = 0;
    let got;
    do {
      ({ bytesRead: got } = await pooled.read(file, buffer, length, most - length, length));
      length += got;
    } while (got > 0 && length < Math.min(most, size));
    return buffer.subarray(0, length);
  } finally {
    await pooled.close(file);
  }
}
