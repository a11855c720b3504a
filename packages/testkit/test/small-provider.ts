import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

import {
  PatchbayError,
  type AcquireOptions,
  type ConnectionProvider,
  type Lease,
  type McpClient,
  type ServerConfig,
  type StdioServerConfig,
  type ToolCallOptions,
  type ToolResult,
} from '@patchbay/protocols';

/** What is asked of one process. */
interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: PatchbayError) => void;
}

/** A parent of what the suite needs, in the smallest way: one process, one client, over lines of JSON. */
class SmallClient {
  readonly #config: StdioServerConfig;
  readonly #listeners = new Set<(method: string, params: unknown) => void>();
  readonly #waiting = new Map<number, Waiting>();
  #child: ChildProcess | undefined;
  #ready: Promise<unknown> | undefined;
  #ids = 0;
  generation = 0;

  constructor(config: StdioServerConfig) {
    this.#config = config;
  }

  end(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return Promise.resolve();
    const gone = new Promise<void>((resolve) => void child.once('exit', () => resolve()));
    child.kill('SIGKILL');
    return gone;
  }

  async request(method: string, params: object, signal?: AbortSignal): Promise<unknown> {
    await (this.#ready ??= this.#start());
    return await this.#send(method, params, signal);
  }

  async call(name: string, args: unknown, options: ToolCallOptions = {}): Promise<ToolResult> {
    const { signal, timeoutMs, repeatable } = options;
    const params = { name, arguments: args };
    const late = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
    const ends = [signal, late].filter((each) => each !== undefined);
    try {
      return (await this.request('tools/call', params, AbortSignal.any(ends))) as ToolResult;
    } catch (error) {
      if (late?.aborted === true) throw new PatchbayError('timeout', 'There was no answer.');
      if (!PatchbayError.isInstance(error) || error.code !== 'connection-lost') throw error;
      if (repeatable === true)
        return await this.call(name, args, { ...options, repeatable: false });
      throw new PatchbayError('outcome-unknown', 'It may have run.', { cause: error });
    }
  }

  listen(listener: (method: string, params: unknown) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #start(): Promise<unknown> {
    const child = spawn(this.#config.command, this.#config.args ?? [], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.#child = child;
    this.generation++;
    child.stdin.on('error', () => undefined);
    createInterface({ input: child.stdout }).on('line', (line) => this.#take(line));
    child.once('exit', () => {
      this.#ready = undefined;
      for (const { reject } of this.#waiting.values()) {
        reject(new PatchbayError('connection-lost', 'The server is gone.'));
      }
      this.#waiting.clear();
      for (const listener of this.#listeners) listener('patchbay/connection', { state: 'lost' });
    });
    return this.#send('initialize', { protocolVersion: '2025-11-25' });
  }

  #take(line: string): void {
    let message: {
      id?: number;
      method?: string;
      result?: unknown;
      error?: { code: number; message: string };
    } | null;
    try {
      message = JSON.parse(line) as typeof message;
    } catch {
      return;
    }
    const { method } = message ?? {};
    if (method !== undefined) for (const hear of this.#listeners) hear(method, undefined);
    const waiting = this.#waiting.get(message?.id ?? 0);
    if (waiting === undefined) return;
    this.#waiting.delete(message!.id!);
    const { result, error } = message!;
    if (error === undefined) return waiting.resolve(result);
    const details = { rpcCode: error.code };
    const secrets = Object.values(this.#config.env ?? {});
    const said = secrets.reduce((text, secret) => text.replaceAll(secret, '***'), error.message);
    waiting.reject(new PatchbayError('protocol-error', said, { details }));
  }

  #send(method: string, params: object, signal?: AbortSignal): Promise<unknown> {
    const id = ++this.#ids;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      signal?.addEventListener('abort', () => {
        this.#waiting.delete(id);
        reject(new PatchbayError('aborted', 'The call was aborted.', { cause: signal.reason }));
      });
      this.#child?.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  }
}

/** Which parts of it do the wrong thing. */
export interface Faults {
  /** Another key for a connection than configuration, sharing, identity and session. */
  readonly key?: (right: string, asker: AcquireOptions) => string;
  /** Another acquire. */
  readonly acquire?: (
    acquire: ConnectionProvider['acquire'],
    ...args: Parameters<ConnectionProvider['acquire']>
  ) => ReturnType<ConnectionProvider['acquire']>;
  /** Another client. */
  readonly client?: (client: McpClient) => Partial<McpClient>;
  /** Another end of a lease. */
  readonly close?: (times: number, end: () => Promise<void>) => Promise<void>;
}

/** A provider of connections that passes the suite, and with faults does not. */
export function smallProvider(faults: Faults = {}): {
  readonly provider: ConnectionProvider;
  [Symbol.asyncDispose](): Promise<void>;
} {
  const clients = new Map<string, SmallClient>();
  const acquire = async (
    config: ServerConfig,
    asker: AcquireOptions = {},
  ): Promise<Lease<McpClient>> => {
    if (asker.signal?.aborted === true) {
      throw new PatchbayError('aborted', 'Nobody waits.', { cause: asker.signal.reason });
    }
    if ('url' in config) throw new PatchbayError('invalid-config', 'It only starts programs.');
    const { command, args, sharing = 'identity' } = config as StdioServerConfig;
    const who = { identity: asker.identity?.id, everyone: '', session: asker.scope?.session };
    const right = JSON.stringify([command, args, sharing, who[sharing]]);
    const key = faults.key?.(right, asker) ?? right;
    const small = clients.get(key) ?? new SmallClient(config as StdioServerConfig);
    clients.set(key, small);
    await small.request('ping', {}).catch((error: unknown) => {
      throw new PatchbayError('connect-failed', 'It does not start.', { cause: error });
    });
    const client = {
      info: { capabilities: {} },
      get generation() {
        return small.generation;
      },
      listTools: async () => {
        const { tools } = (await small.request('tools/list', {})) as { tools: [] };
        return { items: tools, problems: [] };
      },
      callTool: (name, given, options) => small.call(name, given, options),
      onNotification: (listener) => small.listen(listener),
    } as Partial<McpClient> as McpClient;
    let times = 0;
    const close = async () =>
      await faults.close?.(++times, async () => {
        clients.delete(key);
        await small.end();
      });
    const value = Object.create(
      client,
      Object.getOwnPropertyDescriptors(faults.client?.(client) ?? {}),
    ) as McpClient;
    return { value, close, [Symbol.asyncDispose]: close };
  };
  return {
    provider: {
      acquire: (config, asker) =>
        faults.acquire === undefined
          ? acquire(config, asker)
          : faults.acquire(acquire, config, asker),
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...clients.values()].map((client) => client.end()));
    },
  };
}
