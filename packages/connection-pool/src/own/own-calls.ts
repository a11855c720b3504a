import type { Client, JSONRPCRequest } from '@modelcontextprotocol/client';
import type { Stop } from '@patchbay/protocols';

import type { Carrier } from '../carrier.ts';
import type { LinkRequest } from '../link.ts';
import { LOST } from '../stand-in.ts';
import { isObject } from '../wire-content.ts';

type Sdk = typeof import('@modelcontextprotocol/client');

/** By which path tools are called: our own, or the one of the official SDK. */
export type CallPath = 'own' | 'sdk';

/**
 * Sends a call. Answers, and what else comes meanwhile, go to the transport's `onmessage`. `ended`: nothing more comes;
 * otherwise the answer comes by itself.
 */
export type Post = (
  message: JSONRPCRequest,
  stop: Stop,
  /** Whether its answer is still waited for. */
  isOpen: () => boolean,
) => Promise<'ended' | void>;

/** The call is left to the SDK: it did not run to its end, and goes on when it is sent again. (MCP 2026-07-28, `input_required`) */
export const LEFT: unique symbol = Symbol('left to the SDK');

interface Waiting extends Pick<LinkRequest, 'onProgress'> {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly letGo: () => void;
}

/** The SDK's client counts from 0. Servers are known that read ids as 32 bits. */
const FIRST_ID = 1_000_000_000;

export interface OwnCallsOptions {
  readonly sdk: Sdk;
  /** Connected. */
  readonly client: Client;
  readonly transport: Carrier['transport'];
  readonly post: Post;
  /** Ending the response is how a call is cancelled, in the newer era. */
  readonly hasStreams: boolean;
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** A newer server did not say what its answer is. */
  readonly onUnmarked: () => void;
}

/**
 * `tools/call` over the connection of a client of the SDK, beside it: without schemas, and without a copy of the result.
 * What is used of a result is checked where it is used. Answers are those of the SDK, errors too.
 */
export class OwnCalls {
  readonly #options: OwnCallsOptions;
  /** Of the era in which a server may ask something in its answer. */
  readonly isModern: boolean;
  readonly #envelope: Readonly<Record<string, unknown>>;
  readonly #waiting = new Map<number, Waiting>();
  #next = FIRST_ID;
  #isOver = false;

  constructor(options: OwnCallsOptions) {
    this.#options = options;
    const { sdk, client, transport, clientInfo, capabilities } = options;
    this.isModern = client.getProtocolEra() === 'modern';
    this.#envelope = this.isModern
      ? {
          [sdk.PROTOCOL_VERSION_META_KEY]: client.getNegotiatedProtocolVersion(),
          [sdk.CLIENT_INFO_META_KEY]: clientInfo,
          [sdk.CLIENT_CAPABILITIES_META_KEY]: capabilities,
        }
      : {};
    const { onmessage: take } = transport;
    transport.onmessage = (message, extra) => {
      if (!this.#take(message)) take?.(message, extra);
    };
  }

  call(
    params: Readonly<Record<string, unknown>>,
    { stop, onProgress }: Pick<LinkRequest, 'stop' | 'onProgress'>,
  ): Promise<unknown> {
    const { sdk, post, hasStreams } = this.#options;
    const id = this.#next++;
    const message: JSONRPCRequest = {
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      // A server can show by the token that it is alive.
      params: { ...params, _meta: { ...this.#envelope, progressToken: id } },
    };
    return new Promise((resolve, reject) => {
      if (this.#isOver) throw new sdk.SdkError(sdk.SdkErrorCode.NotConnected, 'Not connected');
      if (stop.isOver) throw stop.reason as Error;
      const letGo = stop.onEnd((reason) => {
        this.#fail(id, reason);
        if (!(this.isModern && hasStreams)) this.#cancel(id, reason);
      });
      this.#waiting.set(id, { resolve, reject, letGo, onProgress });
      post(message, stop, () => this.#waiting.has(id)).then(
        (how) => {
          // After most answers: an error costs more than to look whether one is needed.
          if (how === 'ended' && this.#waiting.has(id))
            this.#fail(id, new sdk.ProtocolError(-32_000, 'no answer came', { [LOST]: true }));
        },
        (error: unknown) => this.#fail(id, error),
      );
    });
  }

  /** The connection is gone. */
  end(): void {
    const { SdkError, SdkErrorCode } = this.#options.sdk;
    this.#isOver = true;
    for (const id of this.#waiting.keys())
      this.#fail(id, new SdkError(SdkErrorCode.ConnectionClosed, 'Connection closed'));
  }

  /** Nobody waits for it any more after this. */
  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.letGo();
    return waiting;
  }

  #fail(id: number, error: unknown): void {
    this.#settle(id)?.reject(error as Error);
  }

  #answer(id: number, message: Readonly<Record<string, unknown>>): void {
    const waiting = this.#settle(id);
    try {
      waiting?.resolve(this.#result(message));
    } catch (error) {
      waiting?.reject(error as Error);
    }
  }

  /** Whether a message is one of ours. */
  #take(message: Readonly<Record<string, unknown>>): boolean {
    const { id, method } = message;
    if (method === undefined) {
      const ours = Number(id);
      if (!(ours >= FIRST_ID)) return false;
      // A late answer to what nobody waits for any more is nobody's business.
      if (this.#waiting.has(ours)) this.#answer(ours, message);
      return true;
    }
    if (method !== 'notifications/progress' || !isObject(message['params'])) return false;
    const { progressToken, progress, total, message: said } = message['params'];
    const waiting = this.#waiting.get(progressToken as number);
    if (waiting === undefined)
      return typeof progressToken === 'number' && progressToken >= FIRST_ID;
    if (typeof progress === 'number')
      waiting.onProgress({
        progress,
        ...(typeof total === 'number' ? { total } : {}),
        ...(typeof said === 'string' ? { message: said } : {}),
      });
    return true;
  }

  #result({ result, error }: Readonly<Record<string, unknown>>): unknown {
    const { sdk, onUnmarked } = this.#options;
    if (isObject(error)) {
      const { code, message, data } = error;
      throw sdk.ProtocolError.fromError(Number(code), String(message), data);
    }
    const invalid = (why: string) =>
      new sdk.SdkError(sdk.SdkErrorCode.InvalidResult, `Invalid result for tools/call: ${why}`);
    if (!isObject(result)) throw invalid('not an object');
    if (!this.isModern) return result;
    const { resultType } = result;
    if (resultType === undefined) onUnmarked();
    if (resultType === undefined || resultType === 'complete') return result;
    if (resultType === 'input_required') return LEFT;
    // It may have run: it is not sent again to hear the same of the SDK.
    throw invalid(`unrecognized resultType ${JSON.stringify(resultType)}`);
  }

  #cancel(requestId: number, reason: unknown): void {
    const { client } = this.#options;
    const params = { requestId, reason: String(reason) };
    client.notification({ method: 'notifications/cancelled', params }).catch(() => undefined);
  }
}

/** Over a transport that answers by itself, as stdio does. */
export function postOver(transport: Carrier['transport']): Post {
  return (message) => transport.send(message);
}
