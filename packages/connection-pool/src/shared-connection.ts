import {
  IdleTimer,
  PatchbayError,
  problemFrom,
  toPatchbayError,
  traced,
  type ConnectionStatus,
  type McpClient,
  type Problem,
  type ServerConfig,
  type Stop,
  type TraceListener,
} from '@patchbay/protocols';

import type { Authorization } from './auth/authorization.ts';
import type { BackOff, Clock } from './back-off.ts';
import { isStdio, serverName } from './connection-key.ts';
import { connect, type ConnectOptions } from './connect.ts';
import type { EraStore } from './era-store.ts';
import { Health } from './health.ts';
import type { Link, LinkEvents } from './link.ts';
import { abortable } from './pause.ts';
import { PooledClient } from './pooled-client.ts';
import { RememberedEra } from './remembered-era.ts';
import type { Slots } from './slots.ts';
import type { Thrashing } from './thrashing.ts';
import { warning } from './warning.ts';

/** What a shared connection needs of its pool. */
export interface SharedConnectionHost {
  readonly backOff: BackOff;
  readonly clock: Clock;
  readonly idleMs: number;
  readonly slots: Slots;
  readonly thrashing: Thrashing;
  readonly eras: EraStore;
  readonly connectOptions: Pick<
    ConnectOptions,
    'clientInfo' | 'maxLineBytes' | 'callPath' | 'allowAddress' | 'handlers' | 'children'
  >;
  readonly random: () => number;
  /** Numbers that no other connection of the pool has had. */
  nextGeneration(): number;
  problem(problem: Problem): void;
  readonly trace: TraceListener | undefined;
  /** Nobody can use it any more. `end` settles when nothing of it is left. */
  ended(connection: SharedConnection, end: Promise<void>): void;
}

const CONNECT_MS = 30_000;
const CONNECTION_CHANGED = 'patchbay/connection';

/**
 * The one connection of a key: made at the first use, shared, rebuilt at the next use when it was lost, closed when it
 * was idle for long enough.
 */
export class SharedConnection {
  /** Secret: it holds environment and headers. */
  readonly key: string;
  readonly config: ServerConfig;
  readonly #headers: Readonly<Record<string, string>>;
  /** How the server lets its askers in. */
  readonly authorization: Authorization | undefined;
  readonly #host: SharedConnectionHost;
  readonly #listeners = new Set<(method: string, params: unknown) => void>();
  #link: Link | undefined;
  #connecting: Promise<Link> | undefined;
  readonly #health: Health;
  #wasReady = false;
  #info: Link['info'] = { capabilities: {} };
  readonly #era: RememberedEra;
  /** Whether a process that dies of the first question is started once more. */
  #respawn = true;
  /** The link replaces one over which nothing could be sent any more. If that is true of this one too, it is no use. */
  #replaces = false;
  #calls = 0;
  #leases = 0;
  #inFlight = 0;
  /** Set while it waits for a free process: ended when nobody wants one any more. */
  #queueing: AbortController | undefined;
  readonly #idle: IdleTimer;
  readonly #ended = new AbortController();
  readonly #endings = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;
  #noise = 0;
  /** A link whose server may not be what it said that it is. */
  #doubtful: Link | undefined;
  #wasDoubted = false;
  /** Resources whose updates are wanted, and by how many. */
  readonly #watched = new Map<string, number>();
  #closeWhenIdle = false;
  generation = 0;
  /** When it was used last: `performance.now()`. */
  usedAt: number = performance.now();
  readonly #clients = new Map<string, McpClient>();

  constructor(
    key: string,
    config: ServerConfig,
    headers: Readonly<Record<string, string>>,
    eraKey: string,
    host: SharedConnectionHost,
    authorization: Authorization | undefined,
  ) {
    this.key = key;
    this.config = config;
    this.#headers = headers;
    this.#host = host;
    this.#idle = new IdleTimer(
      host.idleMs,
      () => this.isIdle,
      () => void this.close(),
    );
    this.authorization = authorization;
    this.#health = new Health(config, host.backOff, host.random, host.clock);
    const now = () => host.clock.now();
    this.#era = new RememberedEra(host.eras, eraKey, isStdio(config), now, (cause) => {
      const what = `It cannot be remembered which era of MCP ${serverName(config)} speaks: \`eras\` failed`;
      const error = toPatchbayError(cause, 'source-failed', { what });
      host.problem({ ...problemFrom(this.#health.name, error), severity: 'warning' });
    });
  }

  get isIdle(): boolean {
    return this.#leases === 0 && this.#inFlight === 0 && this.#connecting === undefined;
  }

  /** Its process can be ended: nothing is under way, and no session that is open counts on its state. */
  get canMakeRoom(): boolean {
    const { sharing } = this.config;
    const isQuiet = this.#inFlight === 0 && this.#connecting === undefined;
    return isQuiet && this.#link?.pid !== undefined && (this.isIdle || sharing !== 'session');
  }

  /** Who the server said it is, when it was connected last. */
  get info(): Link['info'] {
    return this.#info;
  }

  status(): ConnectionStatus {
    const pid = this.#link?.pid;
    return {
      ...this.#health.status(),
      ...(pid === undefined || this.#health.state !== 'ready' ? {} : { pid }),
      calls: this.#calls,
    };
  }

  /** The same one for the same wishes: listeners can tell by it whether they know it. */
  clientFor(config: ServerConfig): McpClient {
    const { label, timeouts, replay } = config;
    const wishes = JSON.stringify([label, timeouts, replay]);
    const client = this.#clients.get(wishes) ?? new PooledClient(this, config);
    this.#clients.set(wishes, client);
    return client;
  }

  claim(): void {
    this.#leases++;
    // Somebody needs it after all.
    this.#closeWhenIdle = false;
  }

  release(): void {
    this.#leases--;
    this.#rest();
  }

  listen(listener: (method: string, params: unknown) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * From now on updates of a resource are told, also over the connections that replace this one. Returns what ends it.
   * @throws PatchbayError `not-supported`, or as any request
   */
  async watch(uri: string, what: () => string, signal: AbortSignal): Promise<() => Promise<void>> {
    const wanted = () => [...this.#watched.keys()];
    const change = (by: number) => {
      const count = (this.#watched.get(uri) ?? 0) + by;
      if (count > 0) this.#watched.set(uri, count);
      else this.#watched.delete(uri);
    };
    change(1);
    try {
      await this.use((link) => link.watch(wanted, { signal, what }), { signal });
    } catch (error) {
      change(-1);
      throw error;
    }
    let open = true;
    return async () => {
      if (!open) return;
      open = false;
      change(-1);
      const link = this.#link;
      // The server of a connection that is gone tells nothing any more.
      if (link?.lost === undefined)
        await link?.watch(wanted, { signal: this.#ended.signal, what }).catch(() => undefined);
    };
  }

  /** What was watched over the connection before is watched over this one; it may have changed meanwhile. */
  async #watchAgain(link: Link): Promise<void> {
    const wanted = () => [...this.#watched.keys()];
    if (wanted().length === 0) return;
    try {
      const what = () => 'updates of resources';
      await link.watch(wanted, { signal: this.#ended.signal, what });
      for (const uri of wanted()) this.#tell('notifications/resources/updated', { uri });
    } catch (error) {
      if (this.#link === link)
        this.#host.problem({ ...problemFrom(this.#health.name, error), severity: 'warning' });
    }
  }

  /** Does something with the connection that is there, or with a new one. */
  async use<T>(run: (link: Link) => Promise<T>, stop: Pick<Stop, 'signal'>): Promise<T> {
    this.#inFlight++;
    let link: Link | undefined;
    try {
      link = this.#usable ?? (await this.#ready(stop.signal));
      this.#calls++;
      return await run(link);
    } catch (error) {
      if (link !== undefined && cannotSend(error)) this.retire(link, error);
      throw error;
    } finally {
      this.#inFlight--;
      this.#askAgain();
      this.#rest();
    }
  }

  /**
   * What answered may be an older server now: once nothing is under way, the next use finds out. That is asked once: a
   * server may also be a newer one that does not keep to the rules.
   */
  #askAgain(): void {
    const link = this.#doubtful;
    if (link === undefined || this.#inFlight > 0) return;
    this.#doubtful = undefined;
    this.#wasDoubted = true;
    if (this.#link !== link) return;
    this.#ending(this.#era.forget());
    this.retire(link);
  }

  /** It is there, as far as anybody knows. */
  get isOpen(): boolean {
    return this.#usable !== undefined;
  }

  /** Makes the connection if there is none. */
  async open(signal: AbortSignal | undefined): Promise<void> {
    await this.#ready(signal);
  }

  /** Ends it as soon as nobody uses it. */
  closeWhenIdle(): void {
    this.#closeWhenIdle = true;
    this.#rest();
  }

  /** Ends its process for the sake of another one. If somebody still has a lease, the next use starts it again. */
  makeRoom(): void {
    this.#host.thrashing.closed(this.key);
    if (this.isIdle) {
      void this.close();
      return;
    }
    const link = this.#link!;
    this.#link = undefined;
    this.#ending(this.#end(link));
    this.#to('idle');
  }

  close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = this.#close();
      this.#host.ended(this, this.#closing);
    }
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#idle.stop();
    this.#to('closed');
    this.#ended.abort(closed());
    await this.#connecting?.catch(() => undefined);
    const link = this.#link;
    this.#link = undefined;
    if (link !== undefined) this.#ending(this.#end(link));
    await Promise.all(this.#endings);
  }

  /** The link that is there, if it can be used. */
  get #usable(): Link | undefined {
    const link = this.#link;
    return this.#closing === undefined && link?.lost === undefined ? link : undefined;
  }

  /** The link, when there is one: everybody waits for the same attempt, and may stop waiting. */
  async #ready(signal: AbortSignal | undefined): Promise<Link> {
    if (this.#closing !== undefined) throw closed();
    signal?.throwIfAborted();
    const link = this.#link;
    if (link !== undefined && link.lost === undefined) return link;
    if (link?.lost !== undefined) this.#lost(link, link.lost);
    this.#health.check();
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
      // Whoever waited for it goes first.
      setImmediate(() => this.#rest());
    });
    return abortable(this.#connecting, signal);
  }

  async #connect(): Promise<Link> {
    // A connection that was lost is worth several attempts; one that never was, or is given up, gets one.
    const attempts =
      this.#wasReady && this.#health.state === 'lost' ? this.#host.backOff.attempts : 1;
    this.#to('connecting');
    for (let attempt = 1; ; attempt++) {
      try {
        const link = await traced(
          this.#host.trace,
          () => this.#attempt(),
          (outcome, made) => ({
            type: 'connect',
            server: this.config.label ?? serverName(this.config),
            ...(made?.pid === undefined ? {} : { pid: made.pid }),
            ...outcome,
          }),
        );
        this.#link = link;
        // One that comes to nothing again and again waits longer each time.
        this.#health.recovered(!this.#replaces);
        this.#wasReady = true;
        this.#respawn = true;
        this.#info = link.info;
        this.generation = this.#host.nextGeneration();
        if (this.#closing === undefined) this.#to('ready');
        void this.#watchAgain(link);
        return link;
      } catch (thrown) {
        const error = toPatchbayError(thrown, 'connect-failed');
        if (this.#closing !== undefined) throw closed();
        if (error.code === 'aborted') {
          this.#to('idle');
          throw error;
        }
        // It died: of the first question, or whatever is asked. What was not tried this time is tried the next time.
        if (error.details?.['exitCode'] !== undefined) this.#respawn = !this.#respawn;
        const wait = this.#health.failed(error);
        if (attempt >= attempts || !mayPass(error)) throw this.#giveUp(error, wait);
        await this.#host.clock.wait(wait, this.#ended.signal);
      }
    }
  }

  async #attempt(): Promise<Link> {
    const { slots, connectOptions } = this.#host;
    const { signal } = this.#ended;
    const counted = isStdio(this.config);
    if (counted) {
      await this.#queue();
      this.#host.thrashing.made(this.key);
    }
    let link: Link | undefined;
    try {
      const events: LinkEvents = {
        onNotification: (method, params) => this.#tell(method, params),
        onLost: (error) => this.#lost(link, error),
        onNoise: (sample) => this.#heardNoise(sample),
        onDeaf: () => link !== undefined && this.retire(link),
        onUnmarked: () => {
          if (!this.#wasDoubted) this.#doubtful = link;
        },
      };
      const connectMs = this.config.timeouts?.connectMs ?? CONNECT_MS;
      link = await connect(
        this.config,
        {
          ...connectOptions,
          connectMs,
          headers: this.#headers,
          authorization: this.authorization,
          handlers: { ...connectOptions.handlers, ...this.config.handlers },
          era: this.#era,
          respawn: this.#respawn,
          signal,
        },
        events,
      );
      return link;
    } finally {
      if (counted && link === undefined) slots.release();
    }
  }

  async #queue(): Promise<void> {
    const queueing = new AbortController();
    this.#queueing = queueing;
    try {
      await this.#host.slots.take(AbortSignal.any([this.#ended.signal, queueing.signal]));
    } finally {
      this.#queueing = undefined;
    }
  }

  #lost(link: Link | undefined, error: PatchbayError): void {
    if (link === undefined || this.#link !== link) return;
    this.#link = undefined;
    this.#health.lost(error);
    this.#replaces = false;
    this.#ending(this.#end(link));
    this.#to('lost');
  }

  /**
   * Nothing can be sent over a link any more: the next use makes another one. Answers that are still under way over the
   * old one are waited for. One that replaced another and never answered anything is given up for a while.
   */
  retire(link: Link, why?: PatchbayError): void {
    if (this.#link !== link) return;
    // It is asked again what it is. A newer server has no sessions that could have ended: it may be an older one now.
    if (why !== undefined && link.info.era === 'modern') this.#ending(this.#era.forget());
    this.#link = undefined;
    this.#ending(link.drain(this.#ended.signal).then(() => this.#end(link)));
    if (this.#replaces && link.answered === 0 && why !== undefined) {
      this.#giveUp(why, this.#health.failed(why));
    } else {
      this.#replaces = why !== undefined;
      this.#to('lost');
    }
  }

  /** Closing waits for what is ending. */
  #ending(end: Promise<void>): void {
    const settled = end
      .catch((error: unknown) => this.#host.problem(problemFrom(this.#health.name, error)))
      .finally(() => this.#endings.delete(settled));
    this.#endings.add(settled);
  }

  async #end(link: Link): Promise<void> {
    try {
      await link.close();
    } finally {
      if (isStdio(this.config)) this.#host.slots.release();
    }
  }

  #to(state: 'idle' | 'connecting' | 'ready' | 'lost' | 'closed'): void {
    this.#health.to(state);
    if (state !== 'connecting') this.#tell(CONNECTION_CHANGED, { state });
  }

  #giveUp(error: PatchbayError, waitForMs: number): PatchbayError {
    const told = this.#health.giveUp(error, waitForMs);
    this.#tell(CONNECTION_CHANGED, { state: 'degraded' });
    return told;
  }

  #tell(method: string, params: unknown): void {
    for (const listener of this.#listeners) {
      try {
        listener(method, params);
      } catch (error) {
        // Whoever cannot listen is no reason to lose a connection.
        this.#host.problem(problemFrom(this.#health.name, error));
      }
    }
  }

  /** Text where a message was expected is said once per connection, and does no harm. */
  #heardNoise(sample: string): void {
    if (this.#noise++ > 0) return;
    const message = `The server writes something else than messages to its output, for example: ${JSON.stringify(sample)}. It should write that to stderr.`;
    this.#host.problem(warning(this.#health.name, message));
  }

  #rest(): void {
    if (this.#leases === 0 && this.#inFlight === 0)
      this.#queueing?.abort(new PatchbayError('aborted', 'Nobody waits for it any more.'));
    if (this.#closing !== undefined) return;
    this.usedAt = performance.now();
    if (this.canMakeRoom && this.#host.slots.isWanted) {
      this.makeRoom();
    } else if (this.isIdle && this.#closeWhenIdle) {
      void this.close();
    } else if (this.isIdle) {
      this.#idle.touch();
    }
  }
}

function closed(): PatchbayError {
  return new PatchbayError('closed', 'The connection was closed.');
}

/** Whether waiting a little may help: not where nothing is free, nothing is there to start, or it is refused to us. */
function mayPass({ code, details }: PatchbayError): boolean {
  const { status, errno } = details ?? {};
  return (
    status !== 401 &&
    status !== 403 &&
    code !== 'pool-exhausted' &&
    code !== 'invalid-config' &&
    code !== 'authorization-required' &&
    code !== 'authorization-failed' &&
    errno !== 'ENOENT'
  );
}

/** Nothing can be sent over this link: the server is not reached, does not listen any more, or forgot us. */
function cannotSend(error: unknown): error is PatchbayError {
  if (!PatchbayError.isInstance(error) || error.code !== 'connection-lost') return false;
  const { neverRan, sessionEnded, inputClosed } = error.details ?? {};
  return neverRan === true || sessionEnded === true || inputClosed === true;
}
