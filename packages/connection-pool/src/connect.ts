import type {
  ClientOptions,
  ConnectOptions as SdkConnectOptions,
} from '@modelcontextprotocol/client';
import {
  PatchbayError,
  stopBy,
  type HttpServerConfig,
  type ServerConfig,
  type ServerRequestHandlers,
  type StdioServerConfig,
} from '@patchbay/protocols';

import type { Authorization } from './auth/authorization.ts';
import type { Carrier, CarrierEvents } from './carrier.ts';
import { ClientLink } from './client-link.ts';
import { isHttp, isStdio, serverName } from './connection-key.ts';
import { withDeadline } from './deadline.ts';
import type { HttpKind, HttpRequests } from './http/http-carrier.ts';
import type { AllowAddress } from './http/public-address.ts';
import { injectedLink } from './injected-link.ts';
import type { Link, LinkEvents } from './link.ts';
import { OwnCalls, type CallPath } from './own/own-calls.ts';
import { sendBy, type Send } from './own/send.ts';
import { MAX_TIMER_MS } from './pause.ts';
import { makeRedactor, redacted } from './redact.ts';
import type { RememberedEra } from './remembered-era.ts';
import { carryAnswers } from './sdk-client.ts';
import { announced } from './server-requests.ts';
import type { ExitGuard } from './stdio/exit-guard.ts';

type Sdk = typeof import('@modelcontextprotocol/client');

export interface ConnectOptions {
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly connectMs: number;
  readonly maxLineBytes: number;
  readonly callPath: CallPath;
  readonly allowAddress: AllowAddress | undefined;
  /** Answers to what servers ask. */
  readonly handlers: ServerRequestHandlers;
  /** Headers for this asker. */
  readonly headers: Readonly<Record<string, string>>;
  /** How the server lets this asker in, if it asks for that. */
  readonly authorization: Authorization | undefined;
  /** What the server turned out to be before: it is not asked again. */
  readonly era: RememberedEra;
  /** Whether a process that dies of the first question is started once more. */
  readonly respawn: boolean;
  /** Of the pool: made with its first child. */
  readonly children: { guard?: ExitGuard };
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
  if (isStdio(config)) return connectStdio(config, options, events);
  if (isHttp(config)) return connectHttp(config, options, events);
  return injectedLink(config.client, events);
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
  return connectOver(make, sdk, config, options, events);
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
  const requests = await requestsOf(sdk, config, options);
  let first: PatchbayError | undefined;
  for (const kind of httpKinds(config)) {
    try {
      const make = (told: CarrierEvents) =>
        httpCarrier(sdk, config, kind satisfies HttpKind, requests(told), told);
      return await connectOver(make, sdk, config, options, events);
    } catch (error) {
      // What the newer transport says is nearer to the truth than that the old one does not work either.
      first ??= error as PatchbayError;
      if (!speaksOldTransport(first.details)) break;
    }
  }
  throw first!;
}

/** How requests are sent: by the program's own `fetch`, by Node's, or by one that looks where they go. */
async function requestsOf(
  sdk: Sdk,
  { fetch }: HttpServerConfig,
  { headers, allowAddress, authorization, callPath, maxLineBytes: maxBytes }: ConnectOptions,
): Promise<(told: CarrierEvents) => HttpRequests> {
  const { authorizedFetch } = await import('./auth/authorized-fetch.ts');
  const make = (plain: Omit<HttpRequests, 'headers' | 'maxBytes'>, { onWait }: CarrierEvents) => {
    if (authorization === undefined) return { headers, maxBytes, ...plain };
    const letIn = (by: typeof globalThis.fetch) =>
      authorizedFetch(sdk, by, authorization, onWait, plain.fetch);
    const { send } = plain;
    // It answers with as much of a `Response` as is looked at.
    const authorizedSend =
      send && (letIn(send as unknown as typeof globalThis.fetch) as unknown as Send);
    return { headers, maxBytes, ...plain, fetch: letIn(plain.fetch), send: authorizedSend };
  };
  if (fetch === undefined && allowAddress !== undefined) {
    const { checkedFetch } = await import('./http/checked-fetch.ts');
    return (told) => {
      const { dispatcher, ...plain } = checkedFetch(allowAddress);
      return make({ ...plain, send: sendBy(dispatcher) }, told);
    };
  }
  if (fetch !== undefined || hasOwnDispatcher())
    return (told) => make({ fetch: fetch ?? globalThis.fetch, close: async () => undefined }, told);
  // Node's own `fetch` has a copy that nobody else can use. It is loaded here, so that no call has to wait for it.
  const undici = callPath === 'sdk' ? undefined : await import('undici');
  return (told) => {
    const agent = undici && new undici.Agent();
    const send = agent && sendBy(agent);
    const close = async () => agent?.destroy();
    return make({ fetch: globalThis.fetch, close, send }, told);
  };
}

/** Whether the program decided for all of Node how requests are sent: a proxy, say. */
function hasOwnDispatcher(): boolean {
  const known = Object.getOwnPropertySymbols(globalThis)
    .filter(({ description }) => description?.startsWith('undici.globalDispatcher.') === true)
    .map((key) => (globalThis as Readonly<Record<symbol, unknown>>)[key] as object | undefined);
  return known.some((one) => one !== undefined && one.constructor.name !== 'Agent');
}

/** As what the server turned out to be before; if it refuses that, as if nothing was known of it. */
async function connectOver(
  makeCarrier: (events: CarrierEvents) => Carrier,
  sdk: Sdk,
  config: StdioServerConfig | HttpServerConfig,
  options: ConnectOptions,
  events: LinkEvents,
): Promise<Link> {
  const prior = await options.era.prior();
  try {
    return await attempt(makeCarrier, sdk, config, options, events, prior);
  } catch (thrown) {
    const error = thrown as PatchbayError;
    if (prior === undefined || error.code === 'aborted') throw error;
    await options.era.forget();
    if (!isRefusal(error)) throw error;
    return attempt(makeCarrier, sdk, config, options, events, undefined);
  }
}

/** Whether a server was there, and said no to what it was asked. */
function isRefusal({ cause, details }: PatchbayError): boolean {
  if (typeof (cause as { readonly code?: unknown } | undefined)?.code === 'number') return true;
  const status = Number(details?.['status'] ?? 0);
  // HTTP says that the question was wrong, not that the asker may not ask, or not now.
  return status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);
}

async function attempt(
  makeCarrier: (events: CarrierEvents) => Carrier,
  sdk: Sdk,
  config: StdioServerConfig | HttpServerConfig,
  options: ConnectOptions,
  events: LinkEvents,
  prior: SdkConnectOptions['prior'],
): Promise<Link> {
  const { authorization } = options;
  const redact = makeRedactor(config, options.headers, () => authorization?.secrets ?? []);
  let wait: ((until: Promise<void>) => void) | undefined;
  const carrier = makeCarrier({
    onNoise: (sample) => events.onNoise(redact(sample).slice(0, 200)),
    onDeaf: events.onDeaf,
    onGap: () => link.tellGap(),
    onWait: (until) => wait?.(until),
  });
  const client = new sdk.Client(options.clientInfo, clientOptions(config, options));
  const link = new ClientLink(client, carrier, redact, events, options.handlers);
  try {
    await withDeadline(
      {
        idleMs: options.connectMs,
        stop: options.signal && stopBy(options.signal),
        what: () => 'connecting',
      },
      (deadline) => {
        wait = (until) => deadline.hold(until);
        return client.connect(carrier.transport, {
          // The client has timers too; ours decide.
          timeout: MAX_TIMER_MS,
          signal: deadline.stop.signal,
          ...(prior === undefined ? {} : { prior }),
        });
      },
    );
  } catch (cause) {
    const { hasSession = false } = carrier;
    await carrier.close({ abandon: true });
    const stderr = redact(carrier.stderrTail ?? '').slice(-2_000);
    const facts = { ...(stderr === '' ? {} : { stderr }), ...(hasSession ? { hasSession } : {}) };
    throw redacted(connectError(cause, link.lastError, config, facts), redact);
  }
  carryAnswers(client, events.onUnmarked);
  const { clientInfo, callPath } = options;
  const capabilities = announced(options.handlers);
  const own =
    carrier.own === undefined || callPath === 'sdk'
      ? undefined
      : new OwnCalls({
          sdk,
          client,
          transport: carrier.transport,
          ...carrier.own,
          clientInfo,
          capabilities,
          onUnmarked: events.onUnmarked,
        });
  if (prior === undefined) await options.era.learn(client);
  link.opened(own);
  return link;
}

function clientOptions(
  config: ServerConfig,
  { connectMs, handlers }: ConnectOptions,
): ClientOptions {
  // What is left of the time is for an older server that does not answer questions that it does not know. Over HTTP all do.
  const probeMs = isStdio(config) ? Math.min(PROBE_MS, connectMs / 2) : MAX_TIMER_MS;
  return {
    capabilities: announced(handlers),
    versionNegotiation: {
      mode: 'auto',
      probe: { timeoutMs: probeMs },
    },
  };
}

/** Why connecting failed: the reason nearest to the server, with the end of what it wrote to stderr. */
function connectError(
  thrown: unknown,
  lastError: unknown,
  config: StdioServerConfig | HttpServerConfig,
  facts: { readonly stderr?: string },
): PatchbayError {
  const own = ownError(thrown);
  const server = serverName(config);
  const said = facts.stderr === undefined ? '' : ` It wrote: ${facts.stderr}`;
  if (own?.code === 'timeout') {
    return new PatchbayError(
      'timeout',
      `${server} did not answer the handshake in time. Is it an MCP server?${said}`,
      { cause: own, details: facts },
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
    ...facts,
    ...statusOf(cause),
  };
  return new PatchbayError(
    'connect-failed',
    `${server} could not be connected: ${reason(cause)}${said}`,
    { cause, details },
  );
}

/** Ours, or one of ours that the SDK wrapped. */
function ownError(thrown: unknown): PatchbayError | undefined {
  if (PatchbayError.isInstance(thrown)) return thrown;
  const { cause, data } = (thrown ?? {}) as { readonly cause?: unknown; readonly data?: unknown };
  const inner = cause ?? (data as { readonly cause?: unknown } | undefined)?.cause;
  return inner === undefined ? undefined : ownError(inner);
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
