import { PatchbayError } from '@patchbay/protocols';

import { abortable, MAX_TIMER_MS } from './pause.ts';

/** How many child processes there may be at once. Who finds none free waits in order. */
export class Slots {
  readonly #limit: number;
  readonly #waitMs: number;
  /** Ends a process that nobody needs just now, if there is one. */
  readonly #makeRoom: () => void;
  readonly #waiting: (() => void)[] = [];
  #used = 0;

  constructor(limit: number, waitMs: number, makeRoom: () => void) {
    this.#limit = limit;
    this.#waitMs = waitMs;
    this.#makeRoom = makeRoom;
  }

  /** Somebody waits: a process that becomes idle should make room. */
  get isWanted(): boolean {
    return this.#waiting.length > 0;
  }

  /** @throws PatchbayError `pool-exhausted`, or the reason of `signal` */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#used < this.#limit && this.#waiting.length === 0) {
      this.#used++;
      return;
    }
    let grant!: () => void;
    const granted = new Promise<void>((resolve) => {
      grant = resolve;
    });
    this.#waiting.push(grant);
    this.#makeRoom();
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(this.#exhausted()),
      Math.min(this.#waitMs, MAX_TIMER_MS),
    );
    try {
      await abortable(granted, AbortSignal.any([signal, late.signal]));
    } catch (error) {
      const at = this.#waiting.indexOf(grant);
      if (at === -1) this.release(); // granted in the same moment
      else this.#waiting.splice(at, 1);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #exhausted(): PatchbayError {
    const message = `All ${this.#limit} server processes are in use, and none became free within ${this.#waitMs / 1000} s. Raise \`maxClients\`, or use fewer servers at once.`;
    return new PatchbayError('pool-exhausted', message);
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#used--;
    else next();
  }
}
