import {
  PatchbayError,
  sha256Hex,
  toPatchbayError,
  type AcquireOptions,
  type ConnectionProvider,
  type ConnectionStatus,
  type Identity,
  type Lease,
  type McpClient,
  type Problem,
  type ServerConfig,
  type ServerRequestHandlers,
  type TraceListener,
} from '@patchbay/protocols';

import type { Authorization } from './auth/authorization.ts';
import { Authorizations, type PoolAuthorization } from './auth/authorizations.ts';
import type { BackOff, Clock } from './back-off.ts';
import { connectionKey, isHttp, isStdio, serverName } from './connection-key.ts';
import { eraMemory, type EraStore } from './era-store.ts';
import type { AllowAddress } from './http/public-address.ts';
import type { CallPath } from './own/own-calls.ts';
import { pause } from './pause.ts';
import { SharedConnection, type SharedConnectionHost } from './shared-connection.ts';
import { Slots } from './slots.ts';
import { Thrashing } from './thrashing.ts';

export interface PoolOptions {
  /** How many child processes there may be at once. Default 20. Further ones wait, idle ones are closed first. */
  readonly maxClients?: number;
  /** How long to wait for one of them, in milliseconds. Default 30,000. */
  readonly maxWaitMs?: number;
  /** A connection that nobody used for so long is closed, in milliseconds. Default 300,000; `Infinity`: never. */
  readonly idleMs?: number;
  /** How a lost connection is rebuilt at its next use. */
  readonly backOff?: Partial<BackOff>;
  /** Longest message of a server, in bytes. Default 64 MiB. */
  readonly maxLineBytes?: number;
  /**
   * Programs that may be started: names, looked up in this program's PATH, or paths. What counts is which file is started.
   * Default: all.
   */
  readonly allowCommands?: readonly string[];
  /**
   * Where servers over HTTP may be: asked with every address that a socket would go to. Default: anywhere;
   * {@link isPublicAddress} keeps them out of private networks. A server with a `fetch` of its own is not asked about.
   */
  readonly allowAddress?: AllowAddress;
  /**
   * By which path tools are called: `own`, without schema libraries, and over HTTP without `fetch`; or `sdk`, the one of the
   * official SDK. Both give the same results. A server with a `fetch` of its own is called by that. Default `own`.
   */
  readonly callPath?: CallPath;
  /** Who we say we are. */
  readonly clientInfo?: { readonly name: string; readonly version: string };
  /** How servers over HTTP that ask for it are given access. Default: only as the `auth` of each says. */
  readonly authorization?: PoolAuthorization;
  /**
   * Answers to what servers ask. Only what has a handler is announced to them. The handlers of a call are asked instead
   * while it is the only one of its connection.
   */
  readonly handlers?: ServerRequestHandlers;
  /**
   * Where it is remembered which era of the protocol a server speaks, so that a reconnect does not have to find out again.
   * Default: in this pool.
   */
  readonly eras?: EraStore;
  readonly onProblem?: (problem: Problem) => void;
  /** Told of every attempt to connect, with its time. */
  readonly onTrace?: TraceListener;
  /** Between 0 and 1, for the jitter. Default `Math.random`. */
  readonly random?: () => number;
  /** By which lost connections wait for their next attempt. Default: the real one. */
  readonly clock?: Clock;
}

/** A row of `inspect()`. Plain data, without secrets. */
export interface InspectedConnection extends ConnectionStatus {
  /** Part of the hash that stands for configuration and identity. */
  readonly key: string;
  /** Its label, the program, or the origin of the URL. */
  readonly server: string;
}

const BACK_OFF: BackOff = { attempts: 3, firstMs: 1_000, maxMs: 60_000 };

/**
 * MCP connections, shared by what they are: never two for one key, also under many concurrent first uses; never one for
 * two identities. Making a pool does no I/O. (RFC-0051 "SessionConnectionPool")
 */
export class ConnectionPool implements ConnectionProvider, AsyncDisposable {
  readonly #options: PoolOptions;
  readonly #connections = new Map<string, SharedConnection>();
  /** The connection of an asker whose headers are made for each connect: new headers replace it. */
  readonly #latest = new Map<string, SharedConnection>();
  readonly #host: SharedConnectionHost;
  readonly #authorizations: Authorizations;
  readonly #endings = new Set<Promise<void>>();
  readonly #objectIds = new WeakMap<object, number>();
  #nextObjectId = 1;
  #generation = 0;
  #closing: Promise<void> | undefined;

  constructor(options: PoolOptions = {}) {
    this.#options = options;
    const maxClients = options.maxClients ?? 20;
    const problem = (one: Problem) => options.onProblem?.(one);
    const clock = options.clock ?? { now: () => Date.now(), wait: pause };
    const clientInfo = options.clientInfo ?? { name: 'patchbay', version: '0.0.0' };
    this.#authorizations = new Authorizations(options.authorization ?? {}, {
      clientName: clientInfo.name,
      allowAddress: options.allowAddress,
      now: () => clock.now(),
    });
    this.#host = {
      backOff: { ...BACK_OFF, ...options.backOff },
      clock,
      idleMs: options.idleMs ?? 300_000,
      random: options.random ?? Math.random,
      nextGeneration: () => ++this.#generation,
      slots: new Slots(maxClients, options.maxWaitMs ?? 30_000, () => this.#makeRoom()),
      thrashing: new Thrashing(maxClients, problem),
      eras: options.eras ?? eraMemory(),
      connectOptions: {
        clientInfo,
        maxLineBytes: options.maxLineBytes ?? 64 * 1024 * 1024,
        allowAddress: options.allowAddress,
        callPath: options.callPath ?? 'own',
        children: {},
        handlers: options.handlers ?? {},
      },
      problem,
      trace: options.onTrace,
      ended: (connection, end) => {
        for (const map of [this.#connections, this.#latest])
          for (const [key, known] of map) if (known === connection) map.delete(key);
        this.#authorizations.keepOnly(this.#authorizationsInUse());
        this.#endings.add(end);
        void end.finally(() => this.#endings.delete(end));
      },
    };
  }

  async acquire(config: ServerConfig, options: AcquireOptions = {}): Promise<Lease<McpClient>> {
    const connection = this.#known(config, options) ?? (await this.#claim(config, options));
    let open = true;
    const close = async () => {
      if (!open) return;
      open = false;
      connection.release();
    };
    const isOver = options.stop?.isOver ?? options.signal?.aborted === true;
    if (!connection.isOpen || isOver) {
      const { signal } = options;
      try {
        await connection.open(signal);
      } catch (error) {
        await close();
        if (signal?.aborted !== true) throw error;
        const message = `Connecting to ${serverName(config)} was given up by its caller.`;
        throw new PatchbayError('aborted', message, { cause: signal.reason });
      }
    }
    return { value: connection.clientFor(config), close, [Symbol.asyncDispose]: close };
  }

  status(config: ServerConfig, options: AcquireOptions = {}): ConnectionStatus {
    const key = this.#key(config, staticHeaders(config), options);
    const known = hasMadeHeaders(config) ? this.#latest.get(key) : this.#connections.get(key);
    return (
      known?.status() ?? {
        state: this.#closing === undefined ? 'idle' : 'closed',
        since: new Date().toISOString(),
      }
    );
  }

  /** Every connection there is. */
  inspect(): readonly InspectedConnection[] {
    return [...this.#connections].map(([key, connection]) => ({
      key: sha256Hex(key).slice(0, 12),
      server: connection.config.label ?? serverName(connection.config),
      ...connection.status(),
    }));
  }

  /**
   * Nothing needs a configuration any more: its connections, whoever they are for, end as soon as no lease is held.
   * Whoever acquires it again gets a new one.
   */
  retire(config: ServerConfig): void {
    const of = (one: ServerConfig) =>
      this.#key({ ...one, sharing: 'everyone' }, staticHeaders(one), {});
    const retired = of(config);
    for (const connection of this.#connections.values())
      if (of(connection.config) === retired) connection.closeWhenIdle();
  }

  /** Ends every connection and every process, with everything that it started. */
  close(): Promise<void> {
    this.#authorizations.close();
    for (const connection of this.#connections.values()) void connection.close();
    // Also of those that ended a moment ago, for being idle.
    this.#closing ??= Promise.all(this.#endings).then(() => undefined);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** One that can be used as it is, where nothing has to be asked first; claimed. */
  #known(config: ServerConfig, options: AcquireOptions): SharedConnection | undefined {
    const mayStart = this.#options.allowCommands === undefined || !isStdio(config);
    if (!mayStart || this.#closing !== undefined || hasMadeHeaders(config)) return undefined;
    const known = this.#connections.get(this.#key(config, staticHeaders(config), options));
    if (known?.isOpen !== true) return undefined;
    known.claim();
    return known;
  }

  /** The connection, claimed in the same moment: nobody can close it for being idle in between. */
  async #claim(config: ServerConfig, options: AcquireOptions): Promise<SharedConnection> {
    await this.#check(config);
    const headers = await headersFor(config, options.identity);
    if (this.#closing !== undefined)
      throw new PatchbayError('closed', 'The connection pool was closed; make another one.');
    const key = this.#key(config, headers, options);
    const known = this.#connections.get(key);
    if (known !== undefined) {
      known.claim();
      return known;
    }
    // A renewed token is no other server.
    const asker = hasMadeHeaders(config) ? this.#key(config, {}, options) : key;
    const authorization = isHttp(config)
      ? this.#authorizations.for(config, headers, options, (object) => this.#objectId(object))
      : undefined;
    const made = new SharedConnection(
      key,
      config,
      headers,
      sha256Hex(asker),
      this.#host,
      authorization,
    );
    made.claim();
    this.#connections.set(key, made);
    if (hasMadeHeaders(config)) this.#replace(asker, made);
    return made;
  }

  /** The headers of an asker are others than before, a token was renewed, say: what used the old ones ends. */
  #replace(asker: string, made: SharedConnection): void {
    this.#latest.get(asker)?.closeWhenIdle();
    this.#latest.set(asker, made);
  }

  /** What counts is which file is started: a name may mean another one in the PATH that is configured. */
  async #check(config: ServerConfig): Promise<void> {
    const { allowCommands } = this.#options;
    if (allowCommands === undefined || !isStdio(config)) return;
    const { programPath } = await import('./stdio/program-path.ts');
    const file = await programPath(config.command, config.env, config.cwd);
    const allowed = await Promise.all(allowCommands.map((one) => programPath(one)));
    // What is not there cannot be started, and that is said later.
    if (file === undefined ? allowCommands.includes(config.command) : allowed.includes(file))
      return;
    const which = file === undefined || file === config.command ? '' : ` (${file})`;
    throw new PatchbayError(
      'connect-failed',
      `${config.command}${which} may not be started: it is not among \`allowCommands\`. Add it there, or remove the server.`,
    );
  }

  #key(
    config: ServerConfig,
    headers: Readonly<Record<string, string>>,
    options: AcquireOptions,
  ): string {
    return connectionKey(config, headers, options, (object) => this.#objectId(object));
  }

  #objectId(object: object): number {
    const known = this.#objectIds.get(object);
    if (known !== undefined) return known;
    this.#objectIds.set(object, this.#nextObjectId);
    return this.#nextObjectId++;
  }

  #authorizationsInUse(): ReadonlySet<Authorization | undefined> {
    return new Set([...this.#connections.values()].map(({ authorization }) => authorization));
  }

  /** A process is wanted: ends the one that was used longest ago, rather one that nobody has a lease on. */
  #makeRoom(): void {
    const [one] = [...this.#connections.values()]
      .filter(({ canMakeRoom }) => canMakeRoom)
      .toSorted((a, b) => Number(b.isIdle) - Number(a.isIdle) || a.usedAt - b.usedAt);
    one?.makeRoom();
  }
}

/** Made for each asker, and anew each time. */
const hasMadeHeaders = (config: ServerConfig): boolean =>
  isHttp(config) && typeof config.headers === 'function';

const staticHeaders = (config: ServerConfig): Readonly<Record<string, string>> =>
  isHttp(config) && typeof config.headers === 'object' ? config.headers : {};

async function headersFor(
  config: ServerConfig,
  identity: Identity | undefined,
): Promise<Readonly<Record<string, string>>> {
  if (!isHttp(config) || config.headers === undefined) return {};
  if (typeof config.headers !== 'function') return config.headers;
  try {
    return await config.headers(identity);
  } catch (cause) {
    const what = `The headers of ${serverName(config)} could not be made`;
    throw toPatchbayError(cause, identity === undefined ? 'identity-required' : 'connect-failed', {
      what,
    });
  }
}
