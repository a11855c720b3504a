import type { JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { LOST } from '../stand-in.ts';

type Sdk = typeof import('@modelcontextprotocol/client');

type SendOptions = Parameters<StreamableHTTPClientTransport['send']>[1];

/** Milliseconds. A server may ask for longer waits before a stream is resumed; that would hold up every later one. */
const MAX_RESUME_MS = 5_000;
const FIRST_RESUME_MS = 250;
/** A stream that ends sooner is opened again at growing distances. */
const LASTING_MS = 10_000;
/** So often in a row the stream of notifications may fail to open before it counts as lost. */
const MAX_FAILURES = 3;

export interface LossAwareOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof globalThis.fetch;
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
 * resumed is answered with an error at once instead of at its timeout (typescript-sdk#2739); all timers end with it; the
 * loss of the stream of notifications is told.
 */
export function lossAwareHttp(sdk: Sdk, url: URL, options: LossAwareOptions): LossAwareHttp {
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const clearTimers = () => {
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
  };
  let retired = false;
  let openedAt: number | undefined;
  let short = 0;
  let failures = 0;

  const guardedFetch: typeof globalThis.fetch = async (input, init) => {
    if (retired) throw new Error('The server ended the session of this connection.');
    if (init?.method !== 'GET') return options.fetch(input, init);
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

  return new (class extends sdk.StreamableHTTPClientTransport implements LossAwareHttp {
    /** Requests that wait for their answer. */
    readonly #waiting = new Map<string | number, object>();
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
                this.#waiting.delete(message.id);
              handler(message);
            });
        },
      });
    }

    override async send(
      message: JSONRPCMessage | JSONRPCMessage[],
      sendOptions?: SendOptions,
    ): Promise<void> {
      if (Array.isArray(message) || !('id' in message) || !('method' in message))
        return super.send(message, sendOptions);
      const { id } = message;
      const mark = {};
      this.#waiting.set(id, mark);
      const lost = () => {
        if (this.#waiting.get(id) !== mark) return;
        this.#waiting.delete(id);
        this.#handler?.({
          jsonrpc: '2.0',
          id,
          error: { code: -32_000, message: 'no answer came', data: { [LOST]: true } },
        });
      };
      try {
        await super.send(message, {
          ...sendOptions,
          onRequestStreamEnd: () => {
            sendOptions?.onRequestStreamEnd?.();
            lost();
          },
        });
      } catch (error) {
        this.#waiting.delete(id);
        throw error;
      }
    }

    retire(): void {
      retired = true;
      clearTimers();
    }

    override close(): Promise<void> {
      clearTimers();
      this.#waiting.clear();
      return super.close();
    }
  })();
}
