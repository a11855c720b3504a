import type { Client } from '@modelcontextprotocol/client';
import {
  PatchbayError,
  stopBy,
  type Progress,
  type ServerInfo,
  type ServerRequestHandlers,
} from '@patchbay/protocols';

import type { Carrier } from './carrier.ts';
import { changingLists, listenForLists } from './keep-listening.ts';
import type { Link, LinkEvents, LinkRequest } from './link.ts';
import { LEFT, type OwnCalls } from './own/own-calls.ts';
import { abortable, within } from './pause.ts';
import { redacted, type Redact } from './redact.ts';
import { requestError } from './request-error.ts';
import { ResourceWatch } from './resource-watch.ts';
import { hearNotifications, send, serverInfo } from './sdk-client.ts';
import { announced, Answerers, answerRequests, wentThere } from './server-requests.ts';

/** A link over a client of the official SDK and a carrier, both of our own making. */
export class ClientLink implements Link {
  readonly #client: Client;
  readonly #carrier: Carrier;
  readonly #redact: Redact;
  readonly #events: LinkEvents;
  readonly #ended: Promise<void>;
  #state: 'connecting' | 'open' | 'closing' = 'connecting';
  #lastError: unknown;
  readonly #answerers: Answerers;
  readonly #listening = new AbortController();
  #watch: ResourceWatch | undefined;
  #own: OwnCalls | undefined;
  #onIdle: (() => void) | undefined;
  lost: PatchbayError | undefined;
  answered = 0;

  constructor(
    client: Client,
    carrier: Carrier,
    redact: Redact,
    events: LinkEvents,
    handlers: ServerRequestHandlers,
  ) {
    this.#client = client;
    this.#carrier = carrier;
    this.#redact = redact;
    this.#events = events;
    this.#answerers = new Answerers(handlers);
    hearNotifications(client, (method, params) => {
      if (this.#state === 'connecting') this.#answerers.hear(method, params);
      events.onNotification(method, params);
    });
    answerRequests(client, handlers, this.#answerers);
    client.onerror = (error) => {
      this.#lastError = error;
    };
    this.#ended = new Promise((resolve) => {
      client.onclose = () => {
        this.#gone();
        this.#own?.end();
        resolve();
      };
    });
  }

  get pid(): number | undefined {
    return this.#carrier.pid;
  }

  get info(): ServerInfo {
    return serverInfo(this.#client);
  }

  /** The last thing that went wrong, whoever was told. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /** `own`: the path of our own for calls. It has begun to listen. */
  opened(own: OwnCalls | undefined): void {
    this.#state = 'open';
    this.#own = own;
    this.#answerers.watch(this.#carrier.transport);
    void listenForLists(this.#client, {
      signal: this.#listening.signal,
      onGap: () => this.tellGap(),
      onDeaf: this.#events.onDeaf,
    });
  }

  /** Notifications may have been missed: every list may have changed. */
  tellGap(): void {
    for (const list of changingLists(this.#client))
      this.#events.onNotification(`notifications/${list}/list_changed`, {});
  }

  async request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: LinkRequest,
  ): Promise<unknown> {
    const handlers = this.#answerers.of(options);
    const own = this.#ownFor(method, options, handlers);
    const asking =
      handlers.progress === undefined
        ? options
        : {
            ...options,
            onProgress: (progress: Progress) => {
              options.onProgress(progress);
              const { name } = params;
              handlers.progress?.(progress, {
                method,
                ...(typeof name === 'string' ? { name } : {}),
              });
            },
          };
    const ask = async () => {
      try {
        const answered = own === undefined ? LEFT : await own.call(params, asking);
        return answered === LEFT ? await send(this.#client, method, params, asking) : answered;
      } catch (error) {
        if (!(await wentThere(error, handlers, options.stop))) throw error;
        return send(this.#client, method, params, asking);
      }
    };
    try {
      // Our own path knows by itself whose progress it is.
      const answer = await this.#answerers.during(asking, ask, own !== undefined);
      this.answered++;
      return answer;
    } catch (error) {
      throw this.#meaning(error, options.what);
    } finally {
      this.#answerers.over(asking);
      if (this.#answerers.isIdle) this.#onIdle?.();
    }
  }

  /** Our own path, if it is one for this request. What is used of its answer is the same as on the SDK's. */
  #ownFor(
    method: string,
    { tool }: LinkRequest,
    handlers: ServerRequestHandlers,
  ): OwnCalls | undefined {
    const own = this.#own;
    // Arguments that go into headers are the SDK's, and so is what a newer server asks in its answer.
    const isCovered =
      method === 'tools/call' &&
      tool === undefined &&
      !(own?.isModern === true && canAnswer(handlers));
    return isCovered ? own : undefined;
  }

  async watch(
    wanted: () => readonly string[],
    { signal, what }: Parameters<Link['watch']>[1],
  ): Promise<void> {
    this.#watch ??= new ResourceWatch(this.#client, {
      signal: this.#listening.signal,
      onGap: (uri) => this.#events.onNotification('notifications/resources/updated', { uri }),
      onDeaf: this.#events.onDeaf,
      request: (method, params) =>
        this.request(method, params, { stop: stopBy(signal), what, onProgress: () => undefined }),
    });
    await this.#watch.set(wanted).catch((error: unknown) => {
      throw this.#meaning(error, what);
    });
  }

  /** What a failed request came from. */
  #meaning(error: unknown, what: () => string): PatchbayError {
    const meaning = requestError(error, {
      what: what(),
      lost: this.lost,
      closing: this.#state === 'closing',
      hasSession: this.#carrier.hasSession === true,
      era: this.#client.getProtocolEra(),
    });
    return redacted(meaning, this.#redact);
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#listening.abort();
    this.#carrier.retire?.();
    if (this.#answerers.isIdle) return;
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    const over = abortable(Promise.race([idle, this.#ended]), signal).catch(() => undefined);
    await within(over, this.#carrier.lastAnswersMs ?? 0);
  }

  async close(): Promise<void> {
    this.#state = 'closing';
    this.#listening.abort();
    await this.#carrier.close();
  }

  #gone(): void {
    this.#listening.abort();
    if (this.#state !== 'open' || this.lost !== undefined) return;
    const cause = this.#lastError;
    const known = PatchbayError.isInstance(cause) ? cause : undefined;
    const why = known?.message ?? 'The connection to the server was closed.';
    const tail = this.#redact(this.#carrier.stderrTail ?? '').slice(-400);
    const lost = new PatchbayError(
      known?.code === 'too-large' ? 'too-large' : 'connection-lost',
      tail === '' ? why : `${why} It wrote: ${tail}`,
      {
        cause,
        details: { ...known?.details, ...(tail === '' ? {} : { stderr: tail }) },
      },
    );
    this.lost = redacted(lost, this.#redact);
    this.#events.onLost(this.lost);
  }
}

const canAnswer = (handlers: ServerRequestHandlers): boolean =>
  Object.keys(announced(handlers)).length > 0;
