import type { Problem } from '@patchbay/protocols';

import { warning } from './warning.ts';

/** Within so many milliseconds … */
const WINDOW_MS = 60_000;
/** … so many processes were closed to make room, and started again. */
const TOO_OFTEN = 3;

/** Notices that processes are closed for each other's sake again and again, which makes every use slow. */
export class Thrashing {
  readonly #limit: number;
  readonly #tell: (problem: Problem) => void;
  readonly #closedAt = new Map<string, number>();
  #again: number[] = [];

  constructor(limit: number, tell: (problem: Problem) => void) {
    this.#limit = limit;
    this.#tell = tell;
  }

  /** The process of this key was closed to make room. */
  closed(key: string): void {
    const now = Date.now();
    for (const [known, at] of this.#closedAt)
      if (now - at > WINDOW_MS) this.#closedAt.delete(known);
    this.#closedAt.set(key, now);
  }

  /** The process of this key is started. Tells once per window. */
  made(key: string): void {
    const now = Date.now();
    const at = this.#closedAt.get(key);
    if (at === undefined || now - at > WINDOW_MS) return;
    this.#closedAt.delete(key);
    this.#again = [...this.#again.filter((before) => now - before <= WINDOW_MS), now];
    if (this.#again.length < TOO_OFTEN) return;
    this.#again = [];
    const message = `Server processes are closed to make room and started again soon after: more than ${this.#limit} are in use by turns. Raise \`maxClients\`.`;
    this.#tell(warning('connection-pool', message, 'pool-thrashing'));
  }
}
