import type { Client } from '@modelcontextprotocol/client';
import { PatchbayError } from '@patchbay/protocols';

import { keepListening } from './keep-listening.ts';
import { isObject } from './wire-content.ts';

interface Watching {
  /** Aborted when the connection ends. */
  readonly signal: AbortSignal;
  /** It may have changed while nobody could tell. */
  readonly onGap: (uri: string) => void;
  /** Updates cannot be had any more, although calls may still be answered. */
  readonly onDeaf: () => void;
  readonly request: (method: string, params: { readonly uri: string }) => Promise<unknown>;
}

/**
 * The resources of which a server is asked to tell updates: one by one in older revisions (`resources/subscribe`), as one
 * list over a stream of its own since 2026-07-28 (`subscriptions/listen`).
 */
export class ResourceWatch {
  readonly #client: Client;
  readonly #watching: Watching;
  #told: ReadonlySet<string> = new Set();
  #stream: AbortController | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(client: Client, watching: Watching) {
    this.#client = client;
    this.#watching = watching;
  }

  /**
   * From now on the server tells updates of these and no others. `wanted` is asked when it is its turn: of many changes at
   * once the last state is what counts.
   * @throws PatchbayError `not-supported`, or what the server answered
   */
  set(wanted: () => readonly string[]): Promise<void> {
    const next = this.#last.then(() => this.#set(new Set(wanted())));
    this.#last = next.catch(() => undefined);
    return next;
  }

  async #set(wanted: ReadonlySet<string>): Promise<void> {
    const before = this.#told;
    if (wanted.size === before.size && [...wanted].every((uri) => before.has(uri))) return;
    const { resources }: Readonly<Record<string, unknown>> =
      this.#client.getServerCapabilities() ?? {};
    if (!isObject(resources) || resources['subscribe'] !== true)
      throw new PatchbayError('not-supported', 'The server does not tell updates of resources.');
    if (this.#client.getProtocolEra?.() === 'modern') await this.#listen(wanted);
    else await this.#subscribe(wanted);
  }

  async #subscribe(wanted: ReadonlySet<string>): Promise<void> {
    const { request } = this.#watching;
    const told = new Set(this.#told);
    this.#told = told;
    for (const uri of this.#told) {
      if (wanted.has(uri)) continue;
      told.delete(uri);
      // One that goes on telling does no harm.
      await request('resources/unsubscribe', { uri }).catch(() => undefined);
    }
    for (const uri of wanted) {
      if (told.has(uri)) continue;
      await request('resources/subscribe', { uri });
      told.add(uri);
    }
  }

  /** The new stream is there before the old one ends, so that no update is missed. */
  async #listen(wanted: ReadonlySet<string>): Promise<void> {
    const uris = [...wanted];
    const before = this.#stream;
    if (uris.length > 0) {
      const stream = new AbortController();
      const { onGap, onDeaf } = this.#watching;
      await new Promise<void>((resolve, reject) => {
        const listening = keepListening(
          this.#client,
          { resourceSubscriptions: uris },
          {
            signal: AbortSignal.any([this.#watching.signal, stream.signal]),
            onOpen: resolve,
            onGap: () => {
              for (const uri of uris) onGap(uri);
            },
            onDeaf,
          },
        );
        void listening.then((refusal) =>
          reject(refusal ?? new Error('The stream of updates did not open.')),
        );
      });
      this.#stream = stream;
    } else {
      this.#stream = undefined;
    }
    this.#told = wanted;
    before?.abort();
  }
}
