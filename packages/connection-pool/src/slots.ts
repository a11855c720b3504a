import { PatchbayError } from '@patchbay/protocols';

interface Waiting {
  readonly grant: () => void;
}

/** How many child processes there may be at once. Who finds none free waits in order. */
export class Slots {
  readonly #limit: number;
  readonly #waitMs: number;
  /** Ends an idle process, if there is one. */
  readonly #makeRoom: () => boolean;
  readonly #waiting: Waiting[] = [];
  #used = 0;

  constructor(limit: number, waitMs: number, makeRoom: () => boolean) {
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
    let timer: ReturnType<typeof setTimeout> | undefined;
    let onAbort: (() => void) | undefined;
    let waiting: Waiting | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        waiting = { grant: resolve };
        this.#waiting.push(waiting);
        onAbort = () => reject(signal.reason as Error);
        signal.addEventListener('abort', onAbort, { once: true });
        timer = setTimeout(() => {
          reject(
            new PatchbayError(
              'pool-exhausted',
              `All ${this.#limit} server processes are in use, and none became free within ${this.#waitMs / 1000} s. Raise \`maxClients\`, or use fewer servers at once.`,
            ),
          );
        }, this.#waitMs);
        this.#makeRoom();
      });
    } catch (error) {
      const at = this.#waiting.indexOf(waiting!);
      if (at === -1) this.release(); // granted in the same moment
      else this.#waiting.splice(at, 1);
      throw error;
    } finally {
      clearTimeout(timer);
      if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
    }
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#used--;
    else next.grant();
  }
}
