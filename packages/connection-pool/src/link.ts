import type { Client } from '@modelcontextprotocol/client';
import { PatchbayError, type ServerConfig, type ServerInfo } from '@patchbay/protocols';

import { isHttp, isInjected, isStdio } from './connection-key.ts';
import { withDeadline } from './deadline.ts';
import { makeRedactor } from './redact.ts';
import { isObject } from './wire-content.ts';

/** One process or socket with a client on it: from the handshake until it is gone. */
export interface Link {
  readonly info: ServerInfo;
  readonly pid: number | undefined;
  /** Set once it is gone: why. */
  readonly lost: PatchbayError | undefined;
  /** Resolves when nothing comes over it any more. */
  readonly ended: Promise<void>;
  /** Sends a request. The answer is not validated; the caller checks what it uses. */
  request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: LinkRequest,
  ): Promise<unknown>;
  /** Ends it, with everything it started. Not called for a client that somebody else owns. */
  close(): Promise<void>;
  /** At the end of our own process. */
  killNow(): void;
}

interface LinkRequest {
  readonly signal: AbortSignal;
  readonly onProgress: (params: {
    readonly progress: number;
    readonly total?: number;
    readonly message?: string;
  }) => void;
}

/** What a link tells. */
export interface LinkEvents {
  readonly onNotification: (method: string, params: unknown) => void;
  /** The server is gone, and nobody here closed it. */
  readonly onLost: (error: PatchbayError) => void;
  /** Text of the server where a message was expected. */
  readonly onNoise: (sample: string) => void;
}

export interface LinkOptions {
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly connectMs: number;
  readonly maxLineBytes: number;
  /** Headers for this asker. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

const PROBE_MS = 5_000;
/** The client has timers too; ours decide. */
const NEVER_MS = 2 ** 31 - 1;

/** A result as it came: what is used of it is checked where it is used. */
const unchecked = {
  '~standard': {
    version: 1 as const,
    vendor: 'patchbay',
    validate: (value: unknown) => ({ value }),
  },
};

/**
 * Connects to a server.
 * @throws PatchbayError `connect-failed`, `timeout`, `aborted`. Nothing that was started is left behind.
 */
export async function connect(
  config: ServerConfig,
  options: LinkOptions,
  events: LinkEvents,
): Promise<Link> {
  if (isInjected(config)) return injectedLink(config.client as Client, events);
  const sdk = await import('@modelcontextprotocol/client');
  const client = new sdk.Client(options.clientInfo, {
    versionNegotiation: {
      mode: 'auto',
      probe: { timeoutMs: Math.min(PROBE_MS, options.connectMs) },
    },
  });
  const carrier = await makeCarrier(config, options, sdk);
  const redact = makeRedactor(config, options.headers);
  const link = new ClientLink(client, carrier, redact, events);
  try {
    await withDeadline(
      { idleMs: options.connectMs, signal: options.signal, what: 'connecting' },
      ({ signal }) =>
        client.connect(carrier.transport as Parameters<Client['connect']>[0], {
          timeout: NEVER_MS,
          signal,
        }),
    );
  } catch (error) {
    await carrier.close();
    throw link.connectError(error, config);
  }
  link.opened();
  return link;
}

/** What carries the messages of a client. */
interface Carrier {
  readonly transport: object;
  pid(): number | undefined;
  stderrTail(): string;
  close(): Promise<void>;
  killNow(): void;
  onNoise(listener: (sample: string) => void): void;
}

type Sdk = typeof import('@modelcontextprotocol/client');

async function makeCarrier(config: ServerConfig, options: LinkOptions, sdk: Sdk): Promise<Carrier> {
  if (isStdio(config)) {
    const { StdioTransport } = await import('./stdio/stdio-transport.ts');
    const { command, args, env, cwd } = config;
    const transport = new StdioTransport({
      command,
      maxLineBytes: options.maxLineBytes,
      ...(args === undefined ? {} : { args }),
      ...(env === undefined ? {} : { env }),
      ...(cwd === undefined ? {} : { cwd }),
    });
    return {
      transport,
      pid: () => transport.pid ?? undefined,
      stderrTail: () => transport.stderrTail,
      close: () => transport.close(),
      killNow: () => transport.killNow(),
      onNoise: (listener) => (transport.onnoise = listener),
    };
  }
  if (!isHttp(config))
    throw new PatchbayError('invalid-config', 'A server needs a `command`, a `url` or a `client`.');
  const url = httpUrl(config.url);
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...options.headers } },
    ...(config.fetch === undefined ? {} : { fetch: config.fetch }),
  });
  return {
    transport,
    pid: () => undefined,
    stderrTail: () => '',
    close: async () => {
      await transport.terminateSession().catch(() => undefined);
      await transport.close();
    },
    killNow: () => undefined,
    onNoise: () => undefined,
  };
}

function httpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new PatchbayError(
      'invalid-config',
      'The `url` of a server must begin with http:// or https://.',
    );
  }
  return url;
}

class ClientLink implements Link {
  readonly #client: Client;
  readonly #carrier: Carrier;
  readonly #redact: (text: string) => string;
  readonly #events: LinkEvents;
  #open = false;
  #closing = false;
  #lastError: unknown;
  lost: PatchbayError | undefined;
  readonly ended: Promise<void>;

  constructor(
    client: Client,
    carrier: Carrier,
    redact: (text: string) => string,
    events: LinkEvents,
  ) {
    this.#client = client;
    this.#carrier = carrier;
    this.#redact = redact;
    this.#events = events;
    listenTo(client, events);
    carrier.onNoise((sample) => events.onNoise(redact(sample)));
    client.onerror = (error) => {
      this.#lastError = error;
    };
    this.ended = new Promise((resolve) => {
      client.onclose = () => {
        this.#gone();
        resolve();
      };
    });
  }

  get pid(): number | undefined {
    return this.#carrier.pid();
  }

  get info(): ServerInfo {
    return infoOf(this.#client);
  }

  opened(): void {
    this.#open = true;
  }

  request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: LinkRequest,
  ): Promise<unknown> {
    return requestOf(this.#client, method, params, options);
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#carrier.close();
  }

  killNow(): void {
    this.#carrier.killNow();
  }

  /** Why connecting failed: the reason nearest to the server, with the end of what it wrote to stderr. */
  connectError(thrown: unknown, config: ServerConfig): PatchbayError {
    if (
      PatchbayError.isInstance(thrown) &&
      thrown.code !== 'connection-lost' &&
      thrown.code !== 'timeout'
    )
      return thrown;
    const died = [this.#lastError, thrown].find(
      (error) => PatchbayError.isInstance(error) && error.code === 'connection-lost',
    );
    const cause = died ?? thrown;
    const server = isStdio(config)
      ? config.command
      : isHttp(config)
        ? new URL(config.url).origin
        : 'the client';
    const tail = this.#redact(this.#carrier.stderrTail()).slice(-2_000);
    const said = tail === '' ? '' : ` It wrote: ${tail}`;
    const details = {
      ...(PatchbayError.isInstance(cause) ? cause.details : {}),
      ...(tail === '' ? {} : { stderr: tail }),
    };
    if (PatchbayError.isInstance(thrown) && thrown.code === 'timeout') {
      return new PatchbayError(
        'timeout',
        `${server} did not answer the handshake in time. Is it an MCP server?${said}`,
        { cause, details },
      );
    }
    const why = this.#redact(cause instanceof Error ? cause.message : String(cause));
    return new PatchbayError('connect-failed', `${server} could not be connected: ${why}${said}`, {
      cause,
      details,
    });
  }

  #gone(): void {
    if (this.#closing || !this.#open || this.lost !== undefined) return;
    const cause = this.#lastError;
    const why = PatchbayError.isInstance(cause)
      ? cause.message
      : 'The connection to the server was closed.';
    const tail = this.#redact(this.#carrier.stderrTail()).slice(-400);
    this.lost = new PatchbayError(
      'connection-lost',
      tail === '' ? why : `${why} It wrote: ${tail}`,
      {
        cause,
        ...(PatchbayError.isInstance(cause) && cause.details !== undefined
          ? { details: { ...cause.details, stderr: tail } }
          : {}),
      },
    );
    this.#events.onLost(this.lost);
  }
}

/** A client that the program made and closes itself: of the official SDK, version 1 or 2. */
function injectedLink(client: Client, events: LinkEvents): Link {
  if (typeof client.request !== 'function') {
    throw new PatchbayError(
      'invalid-config',
      'The injected client has no request(); give a connected client of an MCP SDK.',
    );
  }
  listenTo(client, events);
  let lost: PatchbayError | undefined;
  const before = client.onclose;
  const ended = new Promise<void>((resolve) => {
    client.onclose = () => {
      before?.();
      lost = new PatchbayError('connection-lost', 'The injected client was closed.');
      events.onLost(lost);
      resolve();
    };
  });
  return {
    ended,
    pid: undefined,
    get info() {
      return infoOf(client);
    },
    get lost() {
      return lost;
    },
    request: (method, params, options) => requestOf(client, method, params, options),
    close: async () => undefined,
    killNow: () => undefined,
  };
}

function listenTo(client: Client, events: LinkEvents): void {
  client.fallbackNotificationHandler = async ({ method, params }) =>
    events.onNotification(method, params);
}

function requestOf(
  client: Client,
  method: string,
  params: Readonly<Record<string, unknown>>,
  { signal, onProgress }: LinkRequest,
): Promise<unknown> {
  // A progress token is always sent, so that a server can show that it is alive.
  return client.request({ method, params: { ...params } }, unchecked, {
    signal,
    timeout: NEVER_MS,
    onprogress: ({ progress, total, message }) =>
      onProgress({
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      }),
  });
}

function infoOf(client: Client): ServerInfo {
  const version = client.getServerVersion();
  const instructions = client.getInstructions?.();
  const era = client.getProtocolEra?.();
  const protocolVersion = client.getNegotiatedProtocolVersion?.();
  const capabilities: unknown = client.getServerCapabilities();
  return {
    ...(version === undefined ? {} : { name: version.name, version: version.version }),
    ...(protocolVersion === undefined ? {} : { protocolVersion }),
    ...(era === undefined ? {} : { era }),
    ...(instructions === undefined ? {} : { instructions }),
    capabilities: isObject(capabilities) ? capabilities : {},
  };
}
