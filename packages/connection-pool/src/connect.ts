import type { ClientOptions } from '@modelcontextprotocol/client';
import {
  PatchbayError,
  type HttpServerConfig,
  type ServerConfig,
  type ServerRequestHandlers,
  type StdioServerConfig,
} from '@patchbay/protocols';

import type { Carrier, CarrierEvents } from './carrier.ts';
import { ClientLink } from './client-link.ts';
import { isHttp, isInjected, isStdio, serverName } from './connection-key.ts';
import { withDeadline } from './deadline.ts';
import type { ExitGuard } from './exit-guard.ts';
import type { HttpKind, HttpRequests } from './http/http-carrier.ts';
import type { AllowAddress } from './http/public-address.ts';
import { injectedLink } from './injected-link.ts';
import type { Link, LinkEvents } from './link.ts';
import { MAX_TIMER_MS } from './pause.ts';
import { makeRedactor, redacted } from './redact.ts';
import { announced } from './server-requests.ts';

type Sdk = typeof import('@modelcontextprotocol/client');

export interface ConnectOptions {
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly connectMs: number;
  readonly maxLineBytes: number;
  readonly allowAddress: AllowAddress | undefined;
  /** Answers to what servers ask. */
  readonly handlers: ServerRequestHandlers;
  /** Headers for this asker. */
  readonly headers: Readonly<Record<string, string>>;
  /** What the last connection turned out to be: an older server is not asked again whether it is a newer one. */
  readonly era: 'legacy' | 'modern' | undefined;
  /** Whether a process that dies of the first question is started once more. */
  readonly respawn: boolean;
  readonly guard: ExitGuard;
  readonly signal: AbortSignal;
}

const PROBE_MS = 5_000;

/**
 * Connects to a server.
 * @throws PatchbayError `connect-failed`, `timeout`, `aborted`, `invalid-config`. Nothing that was started is left behind.
 */
export async function connect(
  config: ServerConfig,
  options: ConnectOptions,
  events: LinkEvents,
): Promise<Link> {
  if (isInjected(config)) return injectedLink(config.client, events);
  if (isStdio(config)) return connectStdio(config, options, events);
  if (isHttp(config)) return connectHttp(config, options, events);
  throw new PatchbayError('invalid-config', 'A server needs a `command`, a `url` or a `client`.');
}

async function connectStdio(
  config: StdioServerConfig,
  options: ConnectOptions,
  events: LinkEvents,
): Promise<Link> {
  const [sdk, { stdioCarrier }] = await Promise.all([
    import('@modelcontextprotocol/client'),
    import('./stdio/stdio-carrier.ts'),
  ]);
  const make = (told: CarrierEvents) => stdioCarrier(config, options, told);
  return connectOver(make, sdk, config, options, events).catch((failure: Failure) => {
    throw failure.error;
  });
}

async function connectHttp(
  config: HttpServerConfig,
  options: ConnectOptions,
  events: LinkEvents,
): Promise<Link> {
  const [sdk, { httpCarrier, httpKinds, httpUrl, speaksOldTransport }] = await Promise.all([
    import('@modelcontextprotocol/client'),
    import('./http/http-carrier.ts'),
  ]);
  httpUrl(config.url);
  const requests = await requestsOf(config, options);
  let first: PatchbayError | undefined;
  for (const kind of httpKinds(config)) {
    try {
      const make = (told: CarrierEvents) =>
        httpCarrier(sdk, config, kind satisfies HttpKind, requests(), told);
      return await connectOver(make, sdk, config, options, events);
    } catch (thrown) {
      const { error, cause, hadSession } = thrown as Failure;
      // What the newer transport says is nearer to the truth than that the old one does not work either.
      first ??= error;
      if (hadSession || !speaksOldTransport(cause)) break;
    }
  }
  throw first!;
}

/** How requests are sent: by the program's own `fetch`, by Node's, or by one that looks where they go. */
async function requestsOf(
  { fetch }: HttpServerConfig,
  { headers, allowAddress, maxLineBytes: maxBytes }: ConnectOptions,
): Promise<() => HttpRequests> {
  if (fetch === undefined && allowAddress !== undefined) {
    const { checkedFetch } = await import('./http/checked-fetch.ts');
    return () => ({ headers, maxBytes, ...checkedFetch(allowAddress) });
  }
  const close = async () => undefined;
  return () => ({ headers, maxBytes, fetch: fetch ?? globalThis.fetch, close });
}

/** A failed attempt: what it means, and what it came from. */
interface Failure {
  readonly error: PatchbayError;
  readonly cause: unknown;
  /** It got as far as a session. */
  readonly hadSession: boolean;
}

async function connectOver(
  makeCarrier: (events: CarrierEvents) => Carrier,
  sdk: Sdk,
  config: StdioServerConfig | HttpServerConfig,
  options: ConnectOptions,
  events: LinkEvents,
): Promise<Link> {
  const redact = makeRedactor(config, options.headers);
  const carrier = makeCarrier({
    onNoise: (sample) => events.onNoise(redact(sample).slice(0, 200)),
    onDeaf: events.onDeaf,
    onGap: () => link.tellGap(),
  });
  const client = new sdk.Client(options.clientInfo, clientOptions(options));
  const link = new ClientLink(client, carrier, redact, events, options.handlers);
  try {
    await withDeadline(
      { idleMs: options.connectMs, signal: options.signal, what: 'connecting' },
      ({ signal }) =>
        client.connect(carrier.transport, {
          // The client has timers too; ours decide.
          timeout: MAX_TIMER_MS,
          signal,
          ...(options.era === 'legacy' ? { prior: { kind: 'legacy' } as const } : {}),
        }),
    );
  } catch (cause) {
    const hadSession = carrier.hasSession;
    await carrier.close({ abandon: true });
    const error = connectError(cause, link.lastError, config, redact(carrier.stderrTail));
    throw { error: redacted(error, redact), cause, hadSession } satisfies Failure;
  }
  link.opened();
  return link;
}

function clientOptions({ connectMs, handlers }: ConnectOptions): ClientOptions {
  return {
    capabilities: announced(handlers),
    versionNegotiation: {
      mode: 'auto',
      // What is left of the time is for an older server that does not answer questions that it does not know.
      probe: { timeoutMs: Math.min(PROBE_MS, connectMs / 2) },
    },
  };
}

/** Why connecting failed: the reason nearest to the server, with the end of what it wrote to stderr. */
function connectError(
  thrown: unknown,
  lastError: unknown,
  config: StdioServerConfig | HttpServerConfig,
  stderr: string,
): PatchbayError {
  const own = PatchbayError.isInstance(thrown) ? thrown : undefined;
  const server = serverName(config);
  const tail = stderr.slice(-2_000);
  const said = tail === '' ? '' : ` It wrote: ${tail}`;
  if (own?.code === 'timeout') {
    return new PatchbayError(
      'timeout',
      `${server} did not answer the handshake in time. Is it an MCP server?${said}`,
      { cause: own, details: tail === '' ? {} : { stderr: tail } },
    );
  }
  // What says why a program cannot be started needs no more words.
  if (own !== undefined && own.code !== 'connection-lost') return own;
  const died = [lastError, thrown].find(
    (error) => PatchbayError.isInstance(error) && error.code === 'connection-lost',
  );
  const cause = died ?? thrown;
  const details = {
    ...(PatchbayError.isInstance(cause) ? cause.details : {}),
    ...(tail === '' ? {} : { stderr: tail }),
    ...statusOf(cause),
  };
  return new PatchbayError(
    'connect-failed',
    `${server} could not be connected: ${reason(cause)}${said}`,
    { cause, details },
  );
}

function reason(cause: unknown): string {
  const { status } = statusOf(cause);
  if (status === 401 || status === 403)
    return `it refused the credentials (HTTP ${status}). Mend its \`headers\`.`;
  if (!(cause instanceof Error)) return String(cause);
  if (PatchbayError.isInstance(cause)) return cause.message;
  const origin = originOf(cause);
  return origin === cause || origin.message === ''
    ? cause.message
    : `${cause.message} (${origin.message})`;
}

/** The error that an error came from in the end: what the network said, not that `fetch` failed. */
function originOf(error: Error): Error {
  const { cause, errors } = error as { readonly cause?: unknown; readonly errors?: unknown };
  const inner: unknown = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  return inner instanceof Error ? originOf(inner) : error;
}

function statusOf(error: unknown): { readonly status?: number } {
  const status = (error as { readonly status?: unknown } | undefined)?.status;
  return typeof status === 'number' ? { status } : {};
}
