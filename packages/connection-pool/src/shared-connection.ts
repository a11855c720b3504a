import {
  PatchbayError,
  problemFrom,
  toPatchbayError,
  type ConnectionStatus,
  type Problem,
  type ServerConfig,
} from '@patchbay/protocols';

import { waitMs, type BackOff } from './back-off.ts';
import { isStdio } from './connection-key.ts';
import { connect, type Link, type LinkEvents, type LinkOptions } from './link.ts';
import type { Slots } from './slots.ts';

/** What a shared connection needs of its pool. */
export interface SharedConnectionHost {
  readonly backOff: BackOff;
  readonly idleMs: number;
  readonly slots: Slots;
  readonly linkOptions: Omit<LinkOptions, 'signal' | 'headers' | 'connectMs'>;
  readonly random: () => number;
  /** Numbers that no other connection of the pool has had. */
  nextGeneration(): number;
  problem(problem: Problem): void;
  /** It was idle for long enough, or made room: the pool forgets it. */
  ended(connection: SharedConnection): void;
  /** A process or socket is there, which must not outlive our own process. */
  opened(link: Link): void;
  closed(link: Link): void;
}

const CONNECT_MS = 30_000;
const LAST_ANSWERS_MS = 2_000;
const CONNECTION_CHANGED = 'patchbay/connection';

/**
 * The one connection of a key: made at the first use, shared, rebuilt at the next use when it was lost, closed when it
 * was idle for long enough.
 */
export class SharedConnection {
  readonly config: ServerConfig;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #host: SharedConnectionHost;
  readonly #listeners = new Set<(method: string, params: unknown) => void>();
  #link: Link | undefined;
  #connecting: Promise<Link> | undefined;
  #state: ConnectionStatus['state'] = 'idle';
  #since = Date.now();
  #retryAt: number | undefined;
  #lastError: Problem | undefined;
  #failures = 0;
  #wasReady = false;
  #calls = 0;
  #leases = 0;
  #inFlight = 0;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #ended = new AbortController();
  readonly #endings = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;
  #noise = 0;
  generation = 0;

  constructor(
    config: ServerConfig,
    headers: Readonly<Record<string, string>>,
    host: SharedConnectionHost,
  ) {
    this.config = config;
    this.#headers = headers;
    this.#host = host;
  }

  get isIdle(): boolean {
    return this.#leases === 0 && this.#inFlight === 0 && this.#connecting === undefined;
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  get info(): Link['info'] {
    return this.#link?.info ?? { capabilities: {} };
  }

  status(): ConnectionStatus {
    const pid = this.#link?.pid;
    return {
      state: this.#state,
      since: new Date(this.#since).toISOString(),
      ...(this.#retryAt === undefined ? {} : { retryAt: new Date(this.#retryAt).toISOString() }),
      ...(pid === undefined || this.#state !== 'ready' ? {} : { pid }),
      calls: this.#calls,
      ...(this.#lastError === undefined ? {} : { lastError: this.#lastError }),
    };
  }

  claim(): void {
    this.#leases++;
    clearTimeout(this.#idleTimer);
  }

  release(): void {
    this.#leases--;
    this.#rest();
  }

  listen(listener: (method: string, params: unknown) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Does something with the connection that is there, or with a new one. */
  async use<T>(run: (link: Link) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    this.#inFlight++;
    clearTimeout(this.#idleTimer);
    try {
      const link = await this.#ready(signal);
      this.#calls++;
      return await run(link);
    } finally {
      this.#inFlight--;
      this.#rest();
    }
  }

  /** Makes the connection if there is none. */
  async open(signal: AbortSignal | undefined): Promise<void> {
    await this.#ready(signal);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#idleTimer);
    this.#to('closed');
    this.#ended.abort(closed());
    await this.#connecting?.catch(() => undefined);
    const link = this.#link;
    this.#link = undefined;
    this.#host.ended(this);
    if (link !== undefined) await this.#end(link);
    await Promise.all(this.#endings);
  }

  /** The link, when there is one: everybody waits for the same attempt, and may stop waiting. */
  async #ready(signal: AbortSignal | undefined): Promise<Link> {
    if (this.#closing !== undefined) throw closed();
    signal?.throwIfAborted();
    const link = this.#link;
    if (link !== undefined && link.lost === undefined) return link;
    if (link?.lost !== undefined) this.#lost(link, link.lost);
    if (this.#state === 'degraded' && this.#retryAt !== undefined && Date.now() < this.#retryAt) {
      throw new PatchbayError(
        'unavailable',
        `The server is not available: ${this.#lastError?.message ?? 'it could not be reached'} It is tried again at ${new Date(this.#retryAt).toISOString()}.`,
        {
          cause: this.#lastError?.cause,
          details: { retryAt: new Date(this.#retryAt).toISOString() },
        },
      );
    }
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return abortable(this.#connecting, signal);
  }

  async #connect(): Promise<Link> {
    // A connection that was lost is worth several attempts; one that never was, or is given up, gets one.
    const attempts = this.#wasReady && this.#state === 'lost' ? this.#host.backOff.attempts : 1;
    this.#to('connecting');
    for (let attempt = 1; ; attempt++) {
      try {
        const link = await this.#attempt();
        this.#link = link;
        this.#failures = 0;
        this.#wasReady = true;
        this.#lastError = undefined;
        this.generation = this.#host.nextGeneration();
        this.#to('ready');
        return link;
      } catch (thrown) {
        const error = toPatchbayError(thrown, 'connect-failed');
        if (this.#closing !== undefined) throw closed();
        this.#failures++;
        this.#lastError = problemFrom('connection', error);
        const wait = waitMs(this.#failures, this.#host.backOff, this.#host.random);
        if (attempt >= attempts || error.code === 'pool-exhausted') {
          this.#to('degraded', Date.now() + wait);
          throw new PatchbayError(error.code, error.message, {
            cause: error.cause ?? error,
            details: { ...error.details, retryAt: new Date(this.#retryAt!).toISOString() },
          });
        }
        await pause(wait, this.#ended.signal);
      }
    }
  }

  async #attempt(): Promise<Link> {
    const { slots, linkOptions } = this.#host;
    const { signal } = this.#ended;
    const counted = isStdio(this.config);
    if (counted) await slots.take(signal);
    let link: Link | undefined;
    try {
      const events: LinkEvents = {
        onNotification: (method, params) => this.#tell(method, params),
        onLost: (error) => this.#lost(link, error),
        onNoise: (sample) => this.#heardNoise(sample),
      };
      const connectMs = this.config.timeouts?.connectMs ?? CONNECT_MS;
      link = await connect(
        this.config,
        { ...linkOptions, connectMs, headers: this.#headers, signal },
        events,
      );
      this.#host.opened(link);
      return link;
    } finally {
      if (counted && link === undefined) slots.release();
    }
  }

  #lost(link: Link | undefined, error: PatchbayError): void {
    if (link === undefined || this.#link !== link) return;
    this.#link = undefined;
    this.#lastError = problemFrom('connection', error);
    this.#ending(this.#end(link));
    this.#to('lost');
  }

  /**
   * Nothing can be sent over a link any more: the next use makes another one. Answers that are still under way over the
   * old one are waited for.
   */
  retire(link: Link): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    this.#to('lost');
    const waiting = pause(LAST_ANSWERS_MS, this.#ended.signal).catch(() => undefined);
    this.#ending(Promise.race([link.ended, waiting]).then(() => this.#end(link)));
  }

  /** Closing waits for what is ending. */
  #ending(end: Promise<void>): void {
    const settled = end
      .catch((error: unknown) =>
        this.#host.problem(problemFrom(this.config.label ?? 'connection', error)),
      )
      .finally(() => this.#endings.delete(settled));
    this.#endings.add(settled);
  }

  async #end(link: Link): Promise<void> {
    try {
      await link.close();
    } finally {
      this.#host.closed(link);
      if (isStdio(this.config)) this.#host.slots.release();
    }
  }

  #to(state: ConnectionStatus['state'], retryAt?: number): void {
    this.#state = state;
    this.#since = Date.now();
    this.#retryAt = retryAt;
    if (state !== 'connecting') this.#tell(CONNECTION_CHANGED, { state });
  }

  #tell(method: string, params: unknown): void {
    for (const listener of this.#listeners) listener(method, params);
  }

  /** Text where a message was expected is said once per connection, and does no harm. */
  #heardNoise(sample: string): void {
    if (this.#noise++ > 0) return;
    const message = `The server writes something else than messages to its output, for example: ${JSON.stringify(sample)}. It should write that to stderr.`;
    this.#host.problem({
      source: this.config.label ?? 'connection',
      code: 'protocol-error',
      severity: 'warning',
      message,
    });
  }

  #rest(): void {
    if (!this.isIdle || this.#closing !== undefined) return;
    clearTimeout(this.#idleTimer);
    if (this.#host.slots.isWanted && isStdio(this.config)) {
      void this.close();
    } else if (Number.isFinite(this.#host.idleMs)) {
      this.#idleTimer = setTimeout(() => void this.close(), this.#host.idleMs);
      (this.#idleTimer as { unref?: () => void }).unref?.();
    }
  }
}

function closed(): PatchbayError {
  return new PatchbayError('closed', 'The connection was closed.');
}

/** Waits for something shared; giving up does not end it for the others. */
async function abortable<T>(shared: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return shared;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      onAbort = () => reject(signal.reason as Error);
      signal.addEventListener('abort', onAbort, { once: true });
      shared.then(resolve, reject);
    });
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await abortable(new Promise<void>((resolve) => (timer = setTimeout(resolve, ms))), signal);
  } finally {
    clearTimeout(timer);
  }
}
