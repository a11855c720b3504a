import {
  PatchbayError,
  sha256Hex,
  type AcquireOptions,
  type ConnectionProvider,
  type ConnectionStatus,
  type Identity,
  type Lease,
  type McpClient,
  type Problem,
  type ServerConfig,
} from '@patchbay/protocols';

import type { BackOff } from './back-off.ts';
import { connectionKey, isHttp, isStdio } from './connection-key.ts';
import type { Link } from './link.ts';
import { PooledClient } from './pooled-client.ts';
import { SharedConnection, type SharedConnectionHost } from './shared-connection.ts';
import { Slots } from './slots.ts';

export interface PoolOptions {
  /** How many child processes there may be at once. Default 20. Further ones wait, idle ones are closed first. */
  readonly maxClients?: number;
  /** How long to wait for one of them, in milliseconds. Default 30,000. */
  readonly maxWaitMs?: number;
  /** A connection that nobody used for so long is closed, in milliseconds. Default 300,000; `Infinity`: never. */
  readonly idleMs?: number;
  /** How a lost connection is rebuilt at its next use. */
  readonly backOff?: Partial<BackOff>;
  /** Longest message of a child process, in bytes. Default 64 MiB. */
  readonly maxLineBytes?: number;
  /** Programs that may be started. Default: all. */
  readonly allowCommands?: readonly string[];
  /** Who we say we are. */
  readonly clientInfo?: { readonly name: string; readonly version: string };
  readonly onProblem?: (problem: Problem) => void;
  /** Between 0 and 1, for the jitter. Default `Math.random`. */
  readonly random?: () => number;
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
  readonly #host: SharedConnectionHost;
  readonly #links = new Set<Link>();
  readonly #objectIds = new WeakMap<object, number>();
  #nextObjectId = 1;
  #generation = 0;
  #closing: Promise<void> | undefined;
  /** Installed while there is a child process: it must not outlive ours. */
  #exitHook: (() => void) | undefined;

  constructor(options: PoolOptions = {}) {
    this.#options = options;
    this.#host = {
      backOff: { ...BACK_OFF, ...options.backOff },
      idleMs: options.idleMs ?? 300_000,
      random: options.random ?? Math.random,
      nextGeneration: () => ++this.#generation,
      slots: new Slots(options.maxClients ?? 20, options.maxWaitMs ?? 30_000, () =>
        this.#closeIdle(),
      ),
      linkOptions: {
        clientInfo: options.clientInfo ?? { name: 'patchbay', version: '0.0.0' },
        maxLineBytes: options.maxLineBytes ?? 64 * 1024 * 1024,
      },
      opened: (link) => {
        this.#links.add(link);
        this.#watchExit();
      },
      closed: (link) => {
        this.#links.delete(link);
        if (this.#links.size === 0) this.#unwatchExit();
      },
      problem: (problem) => options.onProblem?.(problem),
      ended: (connection) => {
        for (const [key, known] of this.#connections)
          if (known === connection) this.#connections.delete(key);
      },
    };
  }

  async acquire(config: ServerConfig, options: AcquireOptions = {}): Promise<Lease<McpClient>> {
    options.signal?.throwIfAborted();
    const connection = await this.#connection(config, options);
    connection.claim();
    let open = true;
    const close = async () => {
      if (!open) return;
      open = false;
      connection.release();
    };
    try {
      await connection.open(options.signal);
    } catch (error) {
      await close();
      throw error;
    }
    return { value: new PooledClient(connection), close, [Symbol.asyncDispose]: close };
  }

  status(config: ServerConfig, options: AcquireOptions = {}): ConnectionStatus {
    const headers = isHttp(config) && typeof config.headers === 'object' ? config.headers : {};
    const known = this.#connections.get(this.#key(config, headers, options));
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
      server: describe(connection.config),
      ...connection.status(),
    }));
  }

  /** Ends every connection and every process, with everything that it started. */
  close(): Promise<void> {
    this.#closing ??= Promise.all(
      [...this.#connections.values()].map((connection) => connection.close()),
    ).then(() => undefined);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #connection(config: ServerConfig, options: AcquireOptions): Promise<SharedConnection> {
    this.#check(config);
    const headers = await headersFor(config, options.identity);
    if (this.#closing !== undefined)
      throw new PatchbayError('closed', 'The connection pool was closed; make another one.');
    const key = this.#key(config, headers, options);
    const known = this.#connections.get(key);
    if (known !== undefined && !known.isClosed) return known;
    const made = new SharedConnection(config, headers, this.#host);
    this.#connections.set(key, made);
    return made;
  }

  #check(config: ServerConfig): void {
    const { allowCommands } = this.#options;
    if (allowCommands === undefined || !isStdio(config) || allowCommands.includes(config.command))
      return;
    throw new PatchbayError(
      'connect-failed',
      `${config.command} may not be started: it is not among \`allowCommands\`. Add it there, or remove the server.`,
    );
  }

  #key(
    config: ServerConfig,
    headers: Readonly<Record<string, string>>,
    options: AcquireOptions,
  ): string {
    return connectionKey(config, headers, options, (object) => {
      const known = this.#objectIds.get(object);
      if (known !== undefined) return known;
      this.#objectIds.set(object, this.#nextObjectId);
      return this.#nextObjectId++;
    });
  }

  /** Makes room for a process that is wanted. */
  #closeIdle(): boolean {
    const idle = [...this.#connections.values()].find(
      (connection) =>
        connection.isIdle && isStdio(connection.config) && connection.status().state === 'ready',
    );
    void idle?.close();
    return idle !== undefined;
  }

  #watchExit(): void {
    if (this.#exitHook !== undefined || typeof process === 'undefined') return;
    this.#exitHook = () => {
      for (const link of this.#links) link.killNow();
    };
    process.on('exit', this.#exitHook);
  }

  #unwatchExit(): void {
    if (this.#exitHook === undefined) return;
    process.off('exit', this.#exitHook);
    this.#exitHook = undefined;
  }
}

async function headersFor(
  config: ServerConfig,
  identity: Identity | undefined,
): Promise<Readonly<Record<string, string>>> {
  if (!isHttp(config) || config.headers === undefined) return {};
  return typeof config.headers === 'function' ? config.headers(identity) : config.headers;
}

function describe(config: ServerConfig): string {
  if (config.label !== undefined) return config.label;
  if (isStdio(config)) return config.command;
  if (isHttp(config)) return URL.canParse(config.url) ? new URL(config.url).origin : 'invalid url';
  return 'injected client';
}
