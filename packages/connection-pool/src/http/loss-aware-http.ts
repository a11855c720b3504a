import type { JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { LOST, TOO_LARGE } from '../stand-in.ts';
import { isEventStream, limited } from './limited.ts';

type Sdk = typeof import('@modelcontextprotocol/client');

type SendOptions = Parameters<StreamableHTTPClientTransport['send']>[1];

/** Milliseconds. A server may ask for longer waits before a stream is resumed; that would hold up every later one. */
const MAX_RESUME_MS = 5_000;
const FIRST_RESUME_MS = 250;
/** A stream that ends sooner is opened again at growing distances. */
const LASTING_MS = 10_000;
/** So often in a row the stream of notifications may fail to open before it counts as lost. */
const MAX_FAILURES = 3;
/** Says to our own `fetch` which message it sends. It goes no further. */
const WHICH = 'x-patchbay-message';

/** A message on its way, until its response has ended. */
interface Sending {
  /** Of a request. */
  readonly id: string | number | undefined;
  /**
   * Ends it. (The official transport has one signal for all, on which Node 20 leaves a listener for each `fetch` until the
   * next garbage collection, and warns of each above 1,500.)
   */
  readonly stop: AbortController;
  isAnswered: boolean;
  /** Its answer may still come. */
  isStreamed: boolean;
}

export interface LossAwareOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof globalThis.fetch;
  /** Longest message, in bytes. */
  readonly maxBytes: number;
  /** The stream of notifications is gone for good. */
  readonly onDeaf: () => void;
  /** It was lost and is open again. */
  readonly onGap: () => void;
}

export interface LossAwareHttp extends StreamableHTTPClientTransport {
  /** From now on nothing is sent, streams that are open go on: the server forgot the session. */
  retire(): void;
}

/**
 * The official Streamable HTTP transport, with what a pool needs of it: a request whose stream ends, is cut, or cannot be
 * resumed, or that is answered without an answer, gets an error at once instead of at its timeout (typescript-sdk#2739);
 * so does one whose answer is too long; all timers end with it; the loss of the stream of notifications is told.
 */
export function lossAwareHttp(sdk: Sdk, url: URL, options: LossAwareOptions): LossAwareHttp {
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const clearTimers = () => {
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
  };
  let retired = false;
  let count = 0;
  let openedAt: number | undefined;
  let short = 0;
  let failures = 0;

  const sendings = new Map<string, Sending>();
  /** Answers for the server. */
  const standIn = ({ id, isAnswered }: Sending, message: string, data: object) => {
    if (id === undefined || isAnswered) return;
    transport.onmessage?.({ jsonrpc: '2.0', id, error: { code: -32_000, message, data } });
  };

  const guardedFetch: typeof globalThis.fetch = async (input, init) => {
    if (retired) throw new Error('The server ended the session of this connection.');
    const headers = new Headers(init?.headers);
    const sending = sendings.get(headers.get(WHICH) ?? '');
    headers.delete(WHICH);
    const signal = sending?.stop.signal ?? init?.signal ?? null;
    const response = await (init?.method === 'GET'
      ? openStream(input, init)
      : options.fetch(input, { ...init, headers, signal }));
    if (sending !== undefined) sending.isStreamed = response.ok && isEventStream(response);
    return limited(response, options.maxBytes, () => {
      const message = 'a message of the server is too long';
      if (sending !== undefined) standIn(sending, message, { [TOO_LARGE]: options.maxBytes });
      return new Error(message);
    });
  };

  const openStream = async (input: Parameters<typeof fetch>[0], init: RequestInit) => {
    const failed = () => {
      if (++failures === MAX_FAILURES && openedAt !== undefined) options.onDeaf();
    };
    try {
      const response = await options.fetch(input, init);
      if (response.ok) {
        const resumed = new Headers(init.headers).has('last-event-id');
        if (openedAt !== undefined && !resumed) options.onGap();
        openedAt = performance.now();
      }
      // 405: the server has no such stream, and needs none.
      if (response.ok || response.status === 405) failures = 0;
      else failed();
      return response;
    } catch (error) {
      if (init.signal?.aborted !== true) failed();
      throw error;
    }
  };

  const transport = new (class extends sdk.StreamableHTTPClientTransport implements LossAwareHttp {
    #handler: StreamableHTTPClientTransport['onmessage'];

    constructor() {
      super(url, {
        requestInit: { headers: { ...options.headers } },
        fetch: guardedFetch,
        reconnectionOptions: {
          initialReconnectionDelay: FIRST_RESUME_MS,
          maxReconnectionDelay: 2_000,
          reconnectionDelayGrowFactor: 2,
          maxRetries: MAX_FAILURES,
        },
        // The official one keeps a single timer for all streams: the others would outlive it.
        reconnectionScheduler: (reconnect, delayMs) => {
          short = performance.now() - (openedAt ?? 0) < LASTING_MS ? short + 1 : 0;
          const growing = FIRST_RESUME_MS * 2 ** Math.min(Math.max(0, short - 1), 5);
          const timer = setTimeout(
            () => {
              timers.delete(timer);
              reconnect();
            },
            Math.min(Math.max(delayMs, growing), MAX_RESUME_MS),
          );
          timers.add(timer);
          return clearTimers;
        },
      });
      // A field of the base class: only an own accessor is in front of it.
      Object.defineProperty(this, 'onmessage', {
        get: () => this.#handler,
        set: (handler: StreamableHTTPClientTransport['onmessage']) => {
          this.#handler =
            handler &&
            ((message: JSONRPCMessage) => {
              if ('id' in message && !('method' in message) && message.id !== undefined)
                for (const one of sendings.values()) one.isAnswered ||= one.id === message.id;
              handler(message);
            });
        },
      });
    }

    override async send(
      message: JSONRPCMessage | JSONRPCMessage[],
      sendOptions?: SendOptions,
    ): Promise<void> {
      const isRequest = !Array.isArray(message) && 'id' in message && 'method' in message;
      const id = isRequest ? message.id : undefined;
      const which = String(++count);
      const sending = { id, stop: new AbortController(), isAnswered: false, isStreamed: false };
      sendings.set(which, sending);
      const ended = () => {
        sendings.delete(which);
        standIn(sending, 'no answer came', { [LOST]: true });
      };
      const { requestSignal } = sendOptions ?? {};
      requestSignal?.addEventListener('abort', () => sending.stop.abort(requestSignal.reason), {
        once: true,
      });
      try {
        await super.send(message, {
          ...sendOptions,
          headers: { ...sendOptions?.headers, [WHICH]: which },
          onRequestStreamEnd: () => {
            sendOptions?.onRequestStreamEnd?.();
            ended();
          },
        });
        if (!sending.isStreamed) ended();
      } catch (error) {
        sendings.delete(which);
        throw error;
      }
    }

    retire(): void {
      retired = true;
      clearTimers();
    }

    override close(): Promise<void> {
      clearTimers();
      for (const { stop } of sendings.values()) stop.abort();
      sendings.clear();
      return super.close();
    }
  })();
  return transport;
}
