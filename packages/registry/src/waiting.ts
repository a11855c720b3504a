/** What {@link waitFor} gives when the time is over. */
export const LATE: unique symbol = Symbol('late');

/** Timers of the platform hold no more; longer is for ever. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The life of something that others work for: of a registration, a view, a turn, a question. An AbortSignal would do, but
 * Node warns of more than ten listeners on one.
 */
export class Life {
  readonly #listeners = new Set<(reason: unknown) => void>();
  #over: { readonly reason: unknown } | undefined;

  get over(): boolean {
    return this.#over !== undefined;
  }

  end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    for (const listener of this.#listeners) listener(reason);
    this.#listeners.clear();
  }

  /** At once, if it is over. Returns what lets go of it. */
  onEnd(listener: (reason: unknown) => void): () => void {
    if (this.#over !== undefined) listener(this.#over.reason);
    else this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** What ends a wait. */
export type Until = AbortSignal | Life | undefined;

/**
 * Waits for `promise`, for so many milliseconds at most. It goes on by itself when nobody waits for it any more.
 * Rejects with the reason when one of `until` ends.
 */
export async function waitFor<T>(
  promise: T | PromiseLike<T>,
  ms: number,
  ...until: readonly Until[]
): Promise<T | typeof LATE> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let releases: readonly (() => void)[] = [];
  try {
    return await new Promise<T | typeof LATE>((resolve, reject) => {
      void Promise.resolve(promise).then(resolve, reject);
      releases = until.map((each) => onEnd(each, reject));
      if (ms <= MAX_TIMER_MS) timer = setTimeout(() => resolve(LATE), Math.max(0, ms));
    });
  } finally {
    clearTimeout(timer);
    for (const release of releases) release();
  }
}

/** Waits until `promise` settles or `until` ends; after that, whoever works at it has so long to end by itself. */
export async function cutShort<T>(promise: Promise<T>, until: Life, graceMs: number): Promise<T> {
  try {
    return (await waitFor(promise, Infinity, until)) as T;
  } catch (error) {
    if (!until.over) throw error;
    const last = await waitFor(promise, graceMs);
    if (last === LATE) throw error;
    return last;
  }
}

/** Ends when one of `until` does. `release` lets go of them. */
export function untilAnyOf(...until: readonly Until[]): {
  readonly life: Life;
  readonly signal: AbortSignal;
  readonly end: (reason: unknown) => void;
  readonly release: () => void;
} {
  const life = new Life();
  const controller = new AbortController();
  life.onEnd((reason) => controller.abort(reason));
  const end = (reason: unknown) => life.end(reason);
  const releases = until.map((each) => onEnd(each, end));
  return {
    life,
    signal: controller.signal,
    end,
    release: () => {
      for (const release of releases) release();
    },
  };
}

function onEnd(until: Until, listener: (reason: unknown) => void): () => void {
  if (until === undefined) return () => undefined;
  if (until instanceof Life) return until.onEnd(listener);
  const onAbort = () => listener(until.reason);
  if (until.aborted) onAbort();
  else until.addEventListener('abort', onAbort, { once: true });
  return () => until.removeEventListener('abort', onAbort);
}
