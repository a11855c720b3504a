/** Timers of the platform hold no more; longer is for ever. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Ends what nobody uses any more. One timer for many uses: it looks whether there was another one meanwhile, for setting one
 * at each use costs more. It does not keep a program alive.
 */
export class IdleTimer {
  readonly #idleMs: number;
  readonly #isIdle: () => boolean;
  readonly #over: () => void;
  #since = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isStopped = false;

  /** `over` is called when there was no {@link touch} for `idleMs` milliseconds, and `isIdle` says yes. */
  constructor(idleMs: number, isIdle: () => boolean, over: () => void) {
    this.#idleMs = idleMs;
    this.#isIdle = isIdle;
    this.#over = over;
  }

  /** A use has just ended. */
  touch(): void {
    this.#since = performance.now();
    if (this.#timer === undefined) this.#wait(this.#idleMs);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #wait(ms: number): void {
    if (this.#isStopped || this.#idleMs > MAX_TIMER_MS) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      // Whoever is at work touches it afterwards.
      if (!this.#isIdle()) return;
      const left = this.#since + this.#idleMs - performance.now();
      if (left > 0) this.#wait(Math.ceil(left));
      else this.#over();
    }, ms);
    (this.#timer as { unref?: () => void }).unref?.();
  }
}
