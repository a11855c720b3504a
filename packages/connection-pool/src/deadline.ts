import { PatchbayError } from '@patchbay/protocols';

import { MAX_TIMER_MS } from './pause.ts';
import { Stopper, type Stop } from './stop.ts';

export interface DeadlineOptions {
  /** Milliseconds without a sign of life. */
  readonly idleMs: number;
  /** Milliseconds in all. */
  readonly totalMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** What was waited for, for the message: `the call of "echo"`. */
  readonly what: string;
}

/** What runs under a deadline. */
export interface Running {
  /** It ends with a neutral reason: what the caller said is nobody else's business. */
  readonly stop: Stop;
  /** A sign of life. */
  readonly alive: () => void;
  /** Time does not count until then. */
  readonly hold: (until: Promise<unknown>) => void;
}

/**
 * Runs something until it is done, the caller aborts, or time is up; whatever comes first settles it at once.
 * @throws PatchbayError `aborted` (its cause is the caller's reason), `timeout`
 */
export async function withDeadline<T>(
  options: DeadlineOptions,
  run: (running: Running) => Promise<T>,
): Promise<T> {
  const { idleMs, totalMs = MAX_TIMER_MS, signal, what } = options;
  const abortError = () =>
    new PatchbayError('aborted', `${capital(what)} was aborted by its caller.`, {
      cause: signal?.reason,
    });
  if (signal?.aborted === true) throw abortError();
  const stop = new Stopper();
  const started = performance.now();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onAbort: (() => void) | undefined;
  let isOver = false;
  try {
    return await new Promise<T>((resolve, reject) => {
      const end = (error: PatchbayError, reason: string) => {
        reject(error);
        stop.end(new Error(reason));
      };
      let held = 0;
      const alive = () => {
        clearTimeout(timer);
        if (held > 0) return;
        const left = Math.min(idleMs, totalMs - (performance.now() - started), MAX_TIMER_MS);
        timer = setTimeout(
          () => {
            const seconds = Math.round((performance.now() - started) / 100) / 10;
            end(
              new PatchbayError('timeout', `${capital(what)} had no answer within ${seconds} s.`),
              'timeout',
            );
          },
          Math.max(0, left),
        );
      };
      const hold = (until: Promise<unknown>) => {
        held++;
        clearTimeout(timer);
        const over = () => {
          held--;
          if (!isOver) alive();
        };
        until.then(over, over);
      };
      onAbort = () => end(abortError(), 'cancelled by the caller');
      signal?.addEventListener('abort', onAbort, { once: true });
      alive();
      run({ stop, alive, hold }).then(resolve, reject);
    });
  } finally {
    isOver = true;
    clearTimeout(timer);
    if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort);
  }
}

/** As the beginning of a sentence. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
