import {
  PatchbayError,
  problemFrom,
  type AcquireOptions,
  type CompileContext,
  type Lease,
  type Listing,
  type McpClient,
  type Problem,
} from '@patchbay/protocols';

import type { ServerConnections } from './server-connections.ts';
import { lifetimeMs, type Kept, type Lists, type ServerLists } from './server-lists.ts';

/** Who asks for a list, until when, and where problems go. */
export interface Question {
  readonly asker: AcquireOptions;
  readonly signal: AbortSignal | undefined;
  readonly report: (problem: Problem) => void;
}

interface ListReaderOptions {
  readonly id: string;
  readonly server: ServerConnections;
  readonly lists: ServerLists;
  /** There is a connection for whoever asked. */
  readonly connected: (asker: AcquireOptions) => void;
}

type ValueOf<K> = K extends Kept<infer T> ? T : never;

/** Reads the lists of one server: as they are kept, or as the server has them now. */
export class ListReader {
  readonly #options: ListReaderOptions;

  constructor(options: ListReaderOptions) {
    this.#options = options;
  }

  question(context: CompileContext): Question {
    return {
      asker: this.#options.server.askerOf(context),
      signal: context.signal,
      report: (problem) => context.report(problem),
    };
  }

  /** `signal`: in place of the asker's own. */
  async acquire(asker: AcquireOptions, signal?: AbortSignal): Promise<Lease<McpClient>> {
    const lease = await this.#options.server.acquire(asker, signal);
    this.#options.connected(asker);
    return lease;
  }

  /** A list as it is kept, or as the server has it now. While there is no connection, the last one still counts. */
  async read<K extends keyof Lists>(
    kind: K,
    { asker, signal, report }: Question,
    ask: (client: McpClient, before: ValueOf<Lists[K]> | undefined) => Promise<ValueOf<Lists[K]>>,
  ): Promise<ValueOf<Lists[K]>> {
    const { id, server, lists } = this.#options;
    const kept = lists.of(server.keyOf(asker))[kind] as Kept<ValueOf<Lists[K]>>;
    const known = kept.value;
    const state = server.status(asker)?.state;
    if (known !== undefined && (state === 'lost' || state === 'idle')) return known;
    try {
      await using lease = await this.acquire(asker, signal);
      const client = lease.value;
      if (known !== undefined && kept.isFresh(client.generation)) return known;
      return await kept.read(async () => {
        const { generation } = client;
        const now = await ask(client, known);
        const forMs = lifetimeMs(now, tellsChanges(client, kind));
        lists.endsAt(performance.now() + forMs);
        // Half of a list is better than none, but not better than a whole one.
        const keepsOld = now.incomplete === true && known !== undefined;
        const value = keepsOld ? { ...known, problems: now.problems } : now;
        return { value, generation, forMs };
      });
    } catch (error) {
      // A server that is there but fails to list keeps the list of before; one that is not there has no tools.
      if (known === undefined || isGone(error)) throw error;
      report(problemFrom(id, error));
      return known;
    }
  }

  report(listing: Listing<unknown>, context: CompileContext): void {
    const { id } = this.#options;
    for (const problem of listing.problems) context.report({ ...problem, source: id });
  }
}

/** Options of a request that ends with a signal, if there is one. */
export const until = (signal: AbortSignal | undefined): { readonly signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };

/** The server is not there: its last list does not count any more. */
export const isGone = (error: unknown): boolean =>
  PatchbayError.isInstance(error) && GONE.has(error.code);

const GONE: ReadonlySet<string> = new Set([
  'connect-failed',
  'unavailable',
  'closed',
  'identity-required',
  'not-trusted',
]);

/** Whether a server said that it tells when a list changes. */
function tellsChanges({ info }: McpClient, list: keyof Lists): boolean {
  const capability = info.capabilities[CAPABILITY_OF[list] ?? list];
  return (capability as { readonly listChanged?: unknown } | undefined)?.listChanged === true;
}

const CAPABILITY_OF: Readonly<Partial<Record<keyof Lists, string>>> = {
  templates: 'resources',
  skills: 'resources',
};
