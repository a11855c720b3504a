import type { Client, ConnectOptions } from '@modelcontextprotocol/client';

import type { EraStore, EraVerdict } from './era-store.ts';
import { isObject } from './wire-content.ts';

type Prior = NonNullable<ConnectOptions['prior']>;

/** So long it is believed that a server is still an older one. It would answer as one for ever. */
const LEGACY_MS: number = 7 * 24 * 3_600_000;

/** What one server turned out to be, as far as that can be relied on. */
export class RememberedEra {
  readonly #store: EraStore;
  readonly #key: string;
  readonly #isProcess: boolean;
  readonly #now: () => number;
  readonly #failed: (error: unknown) => void;
  /** A store may take a moment: what was written first is read. */
  #last: Promise<unknown> = Promise.resolve();

  /**
   * `isProcess`: the server is started for each connect. It has to show that it runs, so a newer one is asked what it is
   * each time; that is its handshake, as `initialize` is an older one's. `failed`: the store did.
   */
  constructor(
    store: EraStore,
    key: string,
    isProcess: boolean,
    now: () => number,
    failed: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#key = key;
    this.#isProcess = isProcess;
    this.#now = now;
    this.#failed = failed;
  }

  /** What the official client takes instead of asking; `undefined` if the server has to be asked. */
  async prior(): Promise<Prior | undefined> {
    const verdict = await this.#safely(() => this.#store.get(this.#key));
    if (!isObject(verdict) || typeof verdict.at !== 'number') return undefined;
    const age = this.#now() - verdict.at;
    if (verdict.era === 'legacy') return age < LEGACY_MS ? { kind: 'legacy' } : undefined;
    if (verdict.era !== 'modern' || this.#isProcess) return undefined;
    // So long it may be taken as it is, says the server.
    const { discover } = verdict;
    const isFresh = isObject(discover) && age < Number(discover['ttlMs'] ?? 0);
    return isFresh ? ({ kind: 'modern', discover } as unknown as Prior) : undefined;
  }

  /** The client asked, and knows now. */
  async learn(client: Client): Promise<void> {
    const at = this.#now();
    const discover = client.getDiscoverResult();
    const verdict: EraVerdict =
      discover === undefined ? { era: 'legacy', at } : { era: 'modern', at, discover };
    await this.#safely(() => this.#store.set(this.#key, verdict));
  }

  /** It may not be any more what it was. */
  async forget(): Promise<void> {
    await this.#safely(() => this.#store.delete(this.#key));
  }

  #safely<T>(use: () => T | Promise<T>): Promise<T | undefined> {
    const used = this.#last.then(use).catch((error: unknown) => {
      this.#failed(error);
      return undefined;
    });
    this.#last = used;
    return used;
  }
}
