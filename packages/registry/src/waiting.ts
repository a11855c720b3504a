import { stopBy, Stopper, type Stop } from '@patchbay/protocols';

/** What {@link waitFor} gives when the time is over. */
export const LATE: unique symbol = Symbol('late');

/** Timers of the platform hold no more; longer is for ever. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** What ends a wait. */
export type Until = AbortSignal | Stop | undefined;

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
export function cutShort<T>(promise: Promise<T>, until: Stop, graceMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const letGo = until.onEnd((reason) => {
      timer = setTimeout(() => reject(reason as Error), graceMs);
    });
    const done = () => {
      letGo();
      clearTimeout(timer);
    };
    promise.then(
      (value) => {
        done();
        resolve(value);
      },
      (error: unknown) => {
        done();
        reject(error);
      },
    );
  });
}

/** Ends when one of `until` does. `release` lets go of them. */
export function untilAnyOf(...until: readonly Until[]): {
  readonly stop: Stopper;
  readonly release: () => void;
} {
  const stop = new Stopper();
  const end = (reason: unknown) => stop.end(reason);
  const releases = until.map((each) => onEnd(each, end));
  return {
    stop,
    release: () => {
      for (const release of releases) release();
    },
  };
}

function onEnd(until: Until, listener: (reason: unknown) => void): () => void {
  if (until === undefined) return () => undefined;
  return ('onEnd' in until ? until : stopBy(until)).onEnd(listener);
}
