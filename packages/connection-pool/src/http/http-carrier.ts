import { PatchbayError, type HttpServerConfig } from '@patchbay/protocols';

import type { Carrier, CarrierEvents } from '../carrier.ts';
import { postOverHttp } from '../own/post-over-http.ts';
import type { Send } from '../own/send.ts';
import { within } from '../pause.ts';
import { limited } from './limited.ts';
import { lossAwareHttp } from './loss-aware-http.ts';

type Sdk = typeof import('@modelcontextprotocol/client');

/** Longest wait for a server to acknowledge the end of a session, in milliseconds. */
const GOODBYE_MS = 1_000;

export type HttpKind = 'streamable' | 'sse';

/** Which transports of HTTP to try, in order. The old one (HTTP+SSE, 2024-11-05) only where the configuration allows it. */
export function httpKinds({ type }: HttpServerConfig): readonly HttpKind[] {
  if (type === 'sse') return ['sse'];
  return type === 'http' ? ['streamable'] : ['streamable', 'sse'];
}

/** Whether a server answered as one that only knows the old transport, and not with a session. */
export function speaksOldTransport(details: PatchbayError['details'] = {}): boolean {
  const { status, hasSession } = details;
  return hasSession !== true && (status === 400 || status === 404 || status === 405);
}

/** @throws PatchbayError `invalid-config` */
export function httpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const refused = (why: string) =>
    new PatchbayError('invalid-config', `The \`url\` of a server must ${why}.`);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw refused('begin with http:// or https://');
  if (url.username !== '' || url.password !== '')
    throw refused('have no user and password in it: put them into `headers`');
  return url;
}

/** How the requests of a connection are sent. */
export interface HttpRequests {
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof globalThis.fetch;
  /** How calls are sent that go without `fetch`. Not where the program has a `fetch` of its own. */
  readonly send?: Send | undefined;
  /** Longest message, in bytes. */
  readonly maxBytes: number;
  /** Ends the sockets that it opened. */
  readonly close: () => Promise<void>;
}

/** A server that is reached over HTTP. */
export function httpCarrier(
  sdk: Sdk,
  config: HttpServerConfig,
  kind: HttpKind,
  requests: HttpRequests,
  events: CarrierEvents,
): Carrier {
  const url = httpUrl(config.url);
  return kind === 'sse'
    ? sseCarrier(sdk, url, requests)
    : streamableCarrier(sdk, url, requests, events);
}

function streamableCarrier(
  sdk: Sdk,
  url: URL,
  requests: HttpRequests,
  { onDeaf, onGap }: CarrierEvents,
): Carrier {
  const transport = lossAwareHttp(sdk, url, { ...requests, onDeaf, onGap });
  let retired = false;
  const { send, headers, maxBytes } = requests;
  return {
    transport,
    own: send && {
      post: postOverHttp(sdk, transport, { url, headers, maxBytes, send }),
      hasStreams: true,
    },
    get hasSession() {
      return transport.sessionId !== undefined;
    },
    // Every answer comes on its own stream, and every call has a timeout.
    lastAnswersMs: Number.POSITIVE_INFINITY,
    retire: () => {
      retired = true;
      transport.retire();
    },
    close: async () => {
      if (!retired && transport.sessionId !== undefined)
        // Whether it answers to that does not matter.
        await within(
          transport.terminateSession().catch(() => undefined),
          GOODBYE_MS,
        );
      await transport.close();
      await requests.close();
    },
  };
}

/** The old transport: one stream for all answers. Its loss is the loss of the connection. */
function sseCarrier(
  sdk: Sdk,
  url: URL,
  { headers, fetch, maxBytes, close }: HttpRequests,
): Carrier {
  const tooLong = () => new Error(`a message of the server is longer than ${maxBytes} bytes`);
  let failure: unknown;
  const transport = new sdk.SSEClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (input, init) => {
      try {
        return limited(await fetch(input, init), maxBytes, tooLong);
      } catch (error) {
        failure = error;
        throw error;
      }
    },
  });
  const start = transport.start.bind(transport);
  transport.start = () =>
    start().catch((error: unknown) => {
      // It knows only the text of what stopped it.
      throw PatchbayError.isInstance(failure) ? failure : error;
    });
  let handler: ((error: Error) => void) | undefined;
  Object.defineProperty(transport, 'onerror', {
    get: () => handler,
    set: (given: ((error: Error) => void) | undefined) => {
      handler = (error) => {
        given?.(error);
        if (error instanceof sdk.SseError) void transport.close();
      };
    },
  });
  return {
    transport,
    close: async () => {
      await transport.close();
      await close();
    },
  };
}
