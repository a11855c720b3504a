import {
  PatchbayError,
  type AcquireOptions,
  type CompileContext,
  type ConnectionProvider,
  type ConnectionStatus,
  type Lease,
  type McpClient,
  type ServerConfig,
} from '@patchbay/protocols';

interface ServerConnectionsOptions {
  readonly id: string;
  readonly server: ServerConfig;
  readonly connections: ConnectionProvider;
  /** Where the server is configured, for people. */
  readonly origin?: string | undefined;
  /** What the server says, or what happens to a connection; `key` says which. */
  readonly hear: (key: string, method: string, params: unknown) => void;
}

/** The connections to one server: one for everybody, or one for each of those whom its `sharing` keeps apart. */
export class ServerConnections {
  readonly #options: ServerConnectionsOptions;
  readonly #heard = new Map<string, { readonly client: McpClient; readonly stop: () => void }>();

  constructor(options: ServerConnectionsOptions) {
    this.#options = options;
  }

  /** `signal`: in place of the asker's own. */
  async acquire(asker: AcquireOptions, signal?: AbortSignal): Promise<Lease<McpClient>> {
    const { connections, server } = this.#options;
    const who = signal === undefined ? asker : { ...asker, signal };
    let lease: Lease<McpClient>;
    try {
      lease = await connections.acquire(server, who);
    } catch (error) {
      throw this.#located(error);
    }
    this.#listen(this.keyOf(asker), lease.value);
    return lease;
  }

  status(asker: AcquireOptions = {}): ConnectionStatus | undefined {
    return this.#options.connections.status?.(this.#options.server, asker);
  }

  /** Reads of the context only what decides about the connection: who reads less is asked less often. */
  askerOf(context: CompileContext): AcquireOptions {
    const { sharing = 'identity' } = this.#options.server;
    if (sharing === 'everyone') return {};
    const { identity } = context;
    const who = identity === undefined ? {} : { identity };
    return sharing === 'session' ? { ...who, scope: context.scope } : who;
  }

  /** What those who share a connection have in common. */
  keyOf({ scope, identity }: AcquireOptions): string {
    const { sharing = 'identity' } = this.#options.server;
    if (sharing === 'everyone') return '';
    const session = sharing === 'session' ? (scope?.session ?? '') : '';
    return JSON.stringify([identity?.id ?? '', session]);
  }

  /** The connection of those who have `key` in common, if there was one. */
  heard(key: string): McpClient | undefined {
    return this.#heard.get(key)?.client;
  }

  close(): void {
    for (const { stop } of this.#heard.values()) stop();
    this.#heard.clear();
  }

  /** Listens to a connection once: it stays the same while the processes behind it come and go. */
  #listen(key: string, client: McpClient): void {
    const before = this.#heard.get(key);
    if (before?.client === client) return;
    before?.stop();
    const stop = client.onNotification((method, params) => {
      if (method === 'patchbay/connection' && isClosed(params)) {
        stop();
        if (this.#heard.get(key)?.client === client) this.#heard.delete(key);
      }
      this.#options.hear(key, method, params);
    });
    this.#heard.set(key, { client, stop });
  }

  /** A server that cannot be started is mended where it is configured. */
  #located(error: unknown): unknown {
    const { origin, id } = this.#options;
    if (origin === undefined || !PatchbayError.isInstance(error) || error.code !== 'connect-failed')
      return error;
    return new PatchbayError(error.code, `${error.message} It is configured in ${origin}.`, {
      cause: error.cause ?? error,
      source: id,
      ...(error.details === undefined ? {} : { details: error.details }),
    });
  }
}

const isClosed = (params: unknown): boolean =>
  (params as { readonly state?: string } | undefined)?.state === 'closed';
