import { AsyncLocalStorage } from 'node:async_hooks';

import type {
  Client,
  ClientCapabilities,
  CreateMessageResult,
  ElicitResult,
} from '@modelcontextprotocol/client';
import {
  PatchbayError,
  type Progress,
  type ServerRequestHandlers,
  type Stop,
} from '@patchbay/protocols';

import type { Carrier } from './carrier.ts';
import type { LinkRequest } from './link.ts';
import { isObject } from './wire-content.ts';

type Transport = Carrier['transport'];

/** An older server wants a user to have been somewhere first. (MCP 2025-11-25 "URL mode elicitation") */
const URL_ELICITATION_REQUIRED = -32_042;

/** What is announced to servers: only what has a handler. A capability without one would offer tools that then fail. */
export function announced(handlers: ServerRequestHandlers): ClientCapabilities {
  return {
    ...(handlers.elicitation === undefined
      ? {}
      : { elicitation: { form: { applyDefaults: true }, url: {} } }),
    ...(handlers.sampling === undefined ? {} : { sampling: {} }),
    ...(handlers.roots === undefined ? {} : { roots: {} }),
  };
}

/**
 * Who answers what a server asks in the middle of something. It is the call that it asks for: a newer server asks in the
 * answer to it, one over HTTP in the stream of it. Where that is not known, it is the call that is alone, or all calls if
 * they have the same handlers. Otherwise, and when no call is under way, it is whoever made the connection.
 */
export class Answerers {
  readonly #own: ServerRequestHandlers;
  readonly #asking = new AsyncLocalStorage<LinkRequest>();
  /** With the ids of the messages that were sent for them, where they are followed. */
  readonly #underWay = new Map<LinkRequest, readonly unknown[]>();
  /** By the id of their message. */
  readonly #asked = new Map<unknown, LinkRequest>();

  /** `own`: of whoever made the connection. */
  constructor(own: ServerRequestHandlers) {
    this.#own = own;
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0;
  }

  /**
   * Sends a request; until it is {@link over}, what the server asks because of it comes back to it. `knowsProgress`:
   * whoever sends it knows by itself that a sign of life is of this request.
   */
  during<T>(request: LinkRequest, work: () => Promise<T>, knowsProgress: boolean): Promise<T> {
    this.#underWay.set(request, NONE);
    // Following a request costs every promise of the program a little (Node 20): only where somebody is told by it.
    const isFollowed =
      (request.attended === true && !knowsProgress) ||
      isAny(this.#own) ||
      (request.handlers !== undefined && isAny(request.handlers));
    return isFollowed ? this.#asking.run(request, work) : work();
  }

  over(request: LinkRequest): void {
    const ids = this.#underWay.get(request) ?? NONE;
    this.#underWay.delete(request);
    for (const id of ids) this.#asked.delete(id);
  }

  /**
   * From now on an answer is read as part of the request that it is for: over stdio a newer server asks in it, too. So is a
   * sign of life, of which the SDK drops the last one when the answer is right behind it. `transport` is connected.
   */
  watch(transport: Transport): void {
    const { onmessage: take } = transport;
    const send = transport.send.bind(transport);
    const asked = this.#asked;
    transport.send = (message, options) => {
      const asking = this.#asking.getStore();
      const ids = asking && this.#underWay.get(asking);
      if (ids !== undefined && 'id' in message && 'method' in message) {
        asked.set(message.id, asking!);
        this.#underWay.set(asking!, [...ids, message.id]);
      }
      return send(message, options);
    };
    const telling = (tell: () => void) => {
      try {
        tell();
      } catch (error) {
        transport.onerror?.(error as Error);
      }
    };
    transport.onmessage = (message, extra) => {
      if ('method' in message) telling(() => this.hear(message.method, message.params));
      if ('method' in message && message.method === 'notifications/progress') {
        const { progressToken, ...progress } = (message.params ?? {}) as Partial<Progress> & {
          readonly progressToken?: unknown;
        };
        const asking = asked.get(progressToken);
        if (asking !== undefined && isProgress(progress))
          return telling(() => asking.onProgress(progress));
      }
      const id = 'id' in message && !('method' in message) ? message.id : undefined;
      const asking = asked.get(id);
      asked.delete(id);
      if (asking === undefined) take?.(message, extra);
      else this.#asking.run(asking, () => take?.(message, extra));
    };
  }

  /** What a server logs, while it is known during what. */
  hear(method: string, params: unknown): void {
    if (method !== 'notifications/message' || !isObject(params)) return;
    this.current().log?.(params);
  }

  current(): ServerRequestHandlers {
    const asking = this.#asking.getStore();
    if (asking !== undefined && this.#underWay.has(asking)) return this.of(asking);
    const [one] = this.#underWay.keys();
    const agree = [...this.#underWay.keys()].every(({ handlers }) => handlers === one?.handlers);
    return one !== undefined && agree ? this.of(one) : this.#own;
  }

  of({ handlers }: LinkRequest): ServerRequestHandlers {
    return handlers === undefined ? this.#own : { ...this.#own, ...handlers };
  }
}

const NONE: readonly unknown[] = [];

/** Lets handlers answer what a server asks, in both eras of the protocol, and hear what it logs. */
export function answerRequests(
  client: Client,
  handlers: ServerRequestHandlers,
  answerers: Answerers,
): void {
  if (handlers.elicitation !== undefined) {
    client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq }) => {
      const answer = await answerers.current().elicitation?.(params, mcpReq.signal);
      return answered(answer) as ElicitResult;
    });
  }
  if (handlers.sampling !== undefined) {
    client.setRequestHandler('sampling/createMessage', async ({ params }, { mcpReq }) => {
      const answer = await answerers.current().sampling?.(params, mcpReq.signal);
      return answered(answer) as CreateMessageResult;
    });
  }
  if (handlers.roots !== undefined) {
    client.setRequestHandler('roots/list', async (_request, { mcpReq }) => ({
      roots: [...((await answerers.current().roots?.(mcpReq.signal)) ?? [])],
    }));
  }
}

const isAny = (handlers: ServerRequestHandlers): boolean => Object.keys(handlers).length > 0;

const isProgress = (value: Partial<Progress>): value is Progress =>
  typeof value.progress === 'number';

function answered(answer: unknown): unknown {
  if (answer !== undefined) return answer;
  throw new PatchbayError('not-supported', 'Nobody here answers this request.');
}

/**
 * Whether the request that failed so may be sent again, because a user agreed to go where the server wants one to have been
 * first. It was refused for that alone.
 */
export async function wentThere(
  error: unknown,
  handlers: ServerRequestHandlers,
  stop: Stop,
): Promise<boolean> {
  const { code, data } = (error ?? {}) as { readonly code?: unknown; readonly data?: unknown };
  if (code !== URL_ELICITATION_REQUIRED || handlers.elicitation === undefined) return false;
  const wanted = isObject(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : [];
  for (const one of wanted as readonly unknown[]) {
    const answer = isObject(one)
      ? await handlers.elicitation({ ...one, mode: 'url' }, stop.signal)
      : undefined;
    if (answer?.['action'] !== 'accept') return false;
  }
  return wanted.length > 0;
}
