import { PatchbayError, Stopper, type Stop } from '@patchbay/protocols';

import { MAX_TIMER_MS } from './pause.ts';

export interface DeadlineOptions {
  /** Milliseconds without a sign of life. */
  readonly idleMs: number;
  /** Milliseconds in all. */
  readonly totalMs?: number;
  /** The caller's. */
  readonly stop?: Stop | undefined;
  /** What was waited for, for messages: `the call of "echo"`. */
  readonly what: () => string;
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
export function withDeadline<T>(
  { idleMs, totalMs = MAX_TIMER_MS, stop: caller, what }: DeadlineOptions,
  run: (running: Running) => Promise<T>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const aborted = (cause: unknown) =>
      new PatchbayError('aborted', `${capital(what())} was aborted by its caller.`, { cause });
    if (caller?.isOver === true) throw aborted(caller.reason);
    const stop = new Stopper();
    const started = performance.now();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let held = 0;
    let isOver = false;
    const alive = () => {
      clearTimeout(timer);
      if (held > 0) return;
      const left = Math.min(idleMs, totalMs - (performance.now() - started), MAX_TIMER_MS);
      timer = setTimeout(late, Math.max(0, left));
    };
    const late = () => {
      const seconds = Math.round((performance.now() - started) / 100) / 10;
      const message = `${capital(what())} had no answer within ${seconds} s.`;
      end(new PatchbayError('timeout', message), 'timeout');
    };
    const letGo = caller?.onEnd((reason) => end(aborted(reason), 'cancelled by the caller'));
    const over = () => {
      isOver = true;
      clearTimeout(timer);
      letGo?.();
    };
    const end = (error: PatchbayError, reason: string) => {
      over();
      reject(error);
      stop.end(new Error(reason));
    };
    const hold = (until: Promise<unknown>) => {
      held++;
      clearTimeout(timer);
      const go = () => {
        held--;
        if (!isOver) alive();
      };
      until.then(go, go);
    };
    alive();
    run({ stop, alive, hold }).then(
      (value) => {
        over();
        resolve(value);
      },
      (error: unknown) => {
        over();
        reject(error);
      },
    );
  });
}

/** As the beginning of a sentence. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
