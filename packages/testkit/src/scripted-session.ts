import type { AccessGrant } from './oauth-grants.ts';
import type { Protection } from './protection.ts';
import { ScriptedExecution } from './scripted-execution.ts';
import { RpcError, type Outcome, type ScriptedTool } from './scripted-tool.ts';

/** A resource of a scripted server. */
export interface ScriptedResource {
  readonly uri: string;
  readonly name?: string;
  readonly mimeType?: string;
  readonly text: string;
}

/** A prompt of a scripted server: one message, its text with the arguments as JSON behind it. */
export interface ScriptedPrompt {
  readonly name: string;
  readonly description?: string;
  readonly arguments?: readonly { readonly name: string; readonly required?: boolean }[];
  readonly text: string;
}

/**
 * Answers a request for one method: its result, or `undefined` for no answer at all. What it throws is a JSON-RPC error, with
 * the `code` of what was thrown if that is a number, and its `data`. `usual` is what the server would have answered.
 */
export type ScriptedMethod = (
  params: Readonly<Record<string, unknown>>,
  usual: () => Promise<object | undefined>,
) => object | undefined | Promise<object | undefined>;

/** Methods that only some servers have, or that they answer differently, and what announces them. */
export interface ScriptedExtension {
  readonly capabilities: object;
  readonly methods: ReadonlyMap<string, ScriptedMethod>;
}

/** What a scripted server offers, and what happened to it, over all its processes and sockets. */
export interface ScriptedState {
  /** `legacy`: `initialize` and a session. `modern`: 2026-07-28, `server/discover`, stateless. */
  readonly era: 'legacy' | 'modern';
  readonly instructions: string | undefined;
  readonly resources: readonly ScriptedResource[];
  readonly prompts: readonly ScriptedPrompt[];
  readonly extension: ScriptedExtension | undefined;
  /** What the test answers itself. */
  readonly methods: ReadonlyMap<string, ScriptedMethod>;
  tools: readonly ScriptedTool[];
  /** Modern clients that listen. */
  readonly subscriptions: Set<Subscription>;
  /** Questions to clients that are not answered yet, by their id. */
  readonly asked: Map<string, (answer: Message) => void>;
  /** Executions that wait until a modern client sends its request again, by their `requestState`. */
  readonly suspended: Map<string, ScriptedExecution>;
  readonly executions: Map<string, number>;
  readonly requests: string[];
  /** Of requests over HTTP that were not let in. */
  readonly refusals: (401 | 403)[];
  protection: Protection | undefined;
  connections: number;
  cancellations: number;
}

/** A message as it came. */
export interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  /** Of an answer. */
  readonly result?: object;
  readonly error?: unknown;
}

/** Where the answer to one message goes. */
export interface Wire {
  /** An object as JSON, a string as it is. */
  readonly send: (message: object | string) => void;
  /** Ends the process or cuts the socket. */
  readonly die: () => void;
  /** With what the message came in, where that is asked for. */
  readonly grant?: AccessGrant | undefined;
}

/** A modern client listens, by the request with this id. */
export interface Subscription {
  readonly id: unknown;
  readonly send: Wire['send'];
}

/** A notification as a modern client gets it that listens. */
export function subscribed(
  id: unknown,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
): object {
  const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
  return { jsonrpc: '2.0', method, params: { ...params, _meta } };
}

const MODERN = '2026-07-28';
const NOT_FOUND = -32601;
const INVALID = -32602;
const INTERNAL = -32603;
const UNSUPPORTED_VERSION = -32022;

/** One client's conversation with a scripted server. */
export class ScriptedSession {
  readonly #state: ScriptedState;
  readonly #running = new Map<unknown, ScriptedExecution>();
  readonly #subscriptions = new Set<Subscription>();

  constructor(state: ScriptedState) {
    this.#state = state;
  }

  /** The client is gone: what still runs for it is aborted. */
  end(): void {
    for (const execution of this.#running.values()) execution.abort();
    this.#running.clear();
    for (const subscription of this.#subscriptions) this.#unsubscribe(subscription);
  }

  /** The client no longer waits for this request. */
  cancel(id: unknown): void {
    for (const subscription of this.#subscriptions) {
      if (subscription.id === id) this.#unsubscribe(subscription);
    }
    const execution = this.#running.get(id);
    if (execution === undefined) return;
    this.#state.cancellations++;
    this.#running.delete(id);
    execution.abort();
  }

  /** Answers one message; resolves to whether there was an answer. */
  async handle(message: Message, wire: Wire): Promise<boolean> {
    const { id, method, params = {} } = message;
    if (method === undefined) {
      this.#state.asked.get(String(id))?.(message);
      return false;
    }
    this.#state.requests.push(method);
    if (method === 'notifications/cancelled') this.cancel(params['requestId']);
    if (id === undefined) return false;
    try {
      const outcome = await this.#answer(id, method, params, wire);
      if (outcome === undefined) return false;
      wire.send(this.#response(id, outcome));
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      const rpcCode = typeof code === 'number' ? code : INTERNAL;
      const data = (error as { readonly data?: unknown } | undefined)?.data;
      wire.send({ jsonrpc: '2.0', id, error: { code: rpcCode, message: String(error), data } });
    }
    return true;
  }

  #response(id: unknown, outcome: object): object {
    const complete = this.#state.era === 'modern' ? { resultType: 'complete' } : {};
    return { jsonrpc: '2.0', id, result: { ...complete, ...outcome } };
  }

  async #answer(
    id: unknown,
    method: string,
    params: Readonly<Record<string, unknown>>,
    wire: Wire,
  ): Promise<Outcome> {
    const { extension, methods } = this.#state;
    const builtIn = () => this.#builtIn(id, method, params, wire);
    const extended = extension?.methods.get(method);
    const usual = async () => (extended === undefined ? builtIn() : extended(params, builtIn));
    const own = methods.get(method);
    return own === undefined ? usual() : own(params, usual);
  }

  async #builtIn(
    id: unknown,
    method: string,
    params: Readonly<Record<string, unknown>>,
    wire: Wire,
  ): Promise<Outcome> {
    const { tools, resources, prompts } = this.#state;
    const hints = this.#state.era === 'modern' ? { ttlMs: 0, cacheScope: 'private' } : {};
    switch (method) {
      case 'server/discover':
        return this.#discover();
      case 'subscriptions/listen':
        return this.#listen(id, params, wire);
      case 'initialize':
        return this.#initialize(params);
      case 'ping':
        return {};
      case 'tools/list':
        return { tools: tools.map(listed), ...hints };
      case 'tools/call':
        return await this.#call(id, params, wire);
      case 'resources/list': {
        const entries = resources.map((entry) => ({ name: entry.uri, ...entry, text: undefined }));
        return { resources: entries, ...hints };
      }
      case 'resources/templates/list':
        return { resourceTemplates: [], ...hints };
      case 'resources/read': {
        const found = resources.find(({ uri }) => uri === params['uri']);
        if (found === undefined) throw new RpcError(-32002, 'There is no such resource.');
        return { contents: [{ ...found, name: undefined }], ...hints };
      }
      case 'prompts/list':
        return { prompts: prompts.map((entry) => ({ ...entry, text: undefined })), ...hints };
      case 'prompts/get': {
        const found = prompts.find(({ name }) => name === params['name']);
        if (found === undefined) throw new RpcError(INVALID, 'There is no such prompt.');
        const text = `${found.text} ${JSON.stringify(params['arguments'] ?? {})}`;
        return { messages: [{ role: 'user', content: { type: 'text', text } }] };
      }
      default:
        throw new RpcError(NOT_FOUND, `There is no method ${method}.`);
    }
  }

  /** It is answered by notifications, for as long as the client likes. */
  #listen(id: unknown, { notifications }: Readonly<Record<string, unknown>>, wire: Wire): Outcome {
    if (this.#state.era === 'legacy') throw new RpcError(NOT_FOUND, 'Method not found');
    const subscription = { id, send: wire.send };
    this.#subscriptions.add(subscription);
    this.#state.subscriptions.add(subscription);
    wire.send(subscribed(id, 'notifications/subscriptions/acknowledged', { notifications }));
    return undefined;
  }

  #unsubscribe(subscription: Subscription): void {
    this.#subscriptions.delete(subscription);
    this.#state.subscriptions.delete(subscription);
  }

  #discover(): Outcome {
    if (this.#state.era === 'legacy') throw new RpcError(NOT_FOUND, 'Method not found');
    this.#state.connections++;
    return {
      supportedVersions: [MODERN],
      ...this.#introduction(),
      ttlMs: 0,
      cacheScope: 'private',
      _meta: { 'io.modelcontextprotocol/serverInfo': SERVER_INFO },
    };
  }

  #initialize(params: Readonly<Record<string, unknown>>): Outcome {
    if (this.#state.era === 'modern') {
      throw new RpcError(UNSUPPORTED_VERSION, 'This version of the protocol is not supported.');
    }
    this.#state.connections++;
    return {
      protocolVersion: params['protocolVersion'],
      serverInfo: SERVER_INFO,
      ...this.#introduction(),
    };
  }

  #introduction(): object {
    const { instructions, resources, prompts, extension } = this.#state;
    return {
      capabilities: {
        tools: { listChanged: true },
        ...(resources.length > 0 ? { resources: {} } : {}),
        ...(prompts.length > 0 ? { prompts: {} } : {}),
        ...extension?.capabilities,
      },
      ...(instructions === undefined ? {} : { instructions }),
    };
  }

  async #call(
    id: unknown,
    params: Readonly<Record<string, unknown>>,
    wire: Wire,
  ): Promise<Outcome> {
    const execution = this.#execution(params);
    this.#running.set(id, execution);
    const response = (outcome: object) => this.#response(id, outcome);
    try {
      const outcome = await execution.answer({ params, wire, response });
      if (outcome !== undefined) this.#running.delete(id);
      return execution.signal.aborted ? undefined : outcome;
    } catch (error) {
      if (execution.signal.aborted) return undefined;
      this.#running.delete(id);
      throw error;
    }
  }

  #execution({ name, requestState }: Readonly<Record<string, unknown>>): ScriptedExecution {
    if (typeof requestState === 'string') {
      const suspended = this.#state.suspended.get(requestState);
      if (suspended === undefined) throw new RpcError(INVALID, 'There is no such requestState.');
      this.#state.suspended.delete(requestState);
      return suspended;
    }
    const tool = this.#state.tools.find((each) => each.name === name);
    if (tool === undefined) throw new RpcError(INVALID, 'There is no such tool.');
    return new ScriptedExecution(this.#state, tool);
  }
}

const SERVER_INFO = { name: 'scripted', version: '1.0.0' };

/** As it is sent: what is `undefined` is left out of JSON. */
const listed = (tool: ScriptedTool): object => ({
  inputSchema: { type: 'object' },
  ...tool,
  onCall: undefined,
});
