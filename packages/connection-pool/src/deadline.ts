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

/**
 * Runs something until it is done, the caller aborts, or time is up; whatever comes first settles it at once.
 * @throws PatchbayError `aborted` (its cause is the caller's reason), `timeout`
 */
export function withDeadline<T>(
  options: DeadlineOptions,
  run: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const deadline = new Deadline(options, reject);
    run(deadline).then(
      (value) => {
        deadline.over();
        resolve(value);
      },
      (error: unknown) => {
        deadline.over();
        reject(error);
      },
    );
  });
}

/** What something runs under. */
export class Deadline {
  readonly #stopper = new Stopper();
  readonly #options: DeadlineOptions;
  readonly #fail: (error: PatchbayError) => void;
  readonly #started = performance.now();
  readonly #letGo: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #held = 0;
  #isOver = false;

  constructor(options: DeadlineOptions, fail: (error: PatchbayError) => void) {
    const { stop: caller } = options;
    this.#options = options;
    this.#fail = fail;
    if (caller?.isOver === true) throw this.#aborted(caller.reason);
    this.#letGo = caller?.onEnd((reason) =>
      this.#end(this.#aborted(reason), 'cancelled by the caller'),
    );
    this.alive();
  }

  /** It ends with a neutral reason: what the caller said is nobody else's business. */
  get stop(): Stop {
    return this.#stopper;
  }

  /** A sign of life. */
  alive(): void {
    clearTimeout(this.#timer);
    if (this.#held > 0 || this.#isOver) return;
    const { idleMs, totalMs = MAX_TIMER_MS } = this.#options;
    const passed = performance.now() - this.#started;
    const left = Math.min(idleMs, totalMs - passed, MAX_TIMER_MS);
    this.#timer = setTimeout(() => this.#late(), Math.max(0, left));
  }

  /** Time does not count until then. */
  hold(until: Promise<unknown>): void {
    this.#held++;
    clearTimeout(this.#timer);
    const go = () => {
      this.#held--;
      this.alive();
    };
    until.then(go, go);
  }

  /** It is done, and has no deadline any more. */
  over(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#letGo?.();
  }

  #late(): void {
    const seconds = Math.round((performance.now() - this.#started) / 100) / 10;
    const message = `${capital(this.#options.what())} had no answer within ${seconds} s.`;
    this.#end(new PatchbayError('timeout', message), 'timeout');
  }

  #aborted(cause: unknown): PatchbayError {
    const message = `${capital(this.#options.what())} was aborted by its caller.`;
    return new PatchbayError('aborted', message, { cause });
  }

  #end(error: PatchbayError, reason: string): void {
    this.over();
    this.#fail(error);
    this.#stopper.end(new Error(reason));
  }
}

/** As the beginning of a sentence. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
