import {
  PatchbayError,
  toPatchbayError,
  type ContentPart,
  type Listing,
  type McpClient,
  type PromptEntry,
  type PromptMessage,
  type RequestOptions,
  type ResourceEntry,
  type ResourceTemplate,
  type ServerInfo,
  type ToolCallOptions,
  type ToolDefinition,
  type ToolResult,
} from '@patchbay/protocols';

import { withDeadline } from './deadline.ts';
import type { Link } from './link.ts';
import type { SharedConnection } from './shared-connection.ts';
import { isObject, text, toPromptMessages, toResourcePart, toToolResult } from './wire-content.ts';
import { PROMPTS, readAllPages, RESOURCES, TEMPLATES, TOOLS, type WireList } from './wire-lists.ts';

const DEFAULT_MS = { list: 30_000, read: 60_000, call: 300_000, callMax: 3_600_000 };

/** The protocol side of a shared connection. Every use takes the connection that is there, or has it rebuilt. */
export class PooledClient implements McpClient {
  readonly #connection: SharedConnection;

  constructor(connection: SharedConnection) {
    this.#connection = connection;
  }

  get info(): ServerInfo {
    return this.#connection.info;
  }

  get generation(): number {
    return this.#connection.generation;
  }

  onNotification(listener: (method: string, params: unknown) => void): () => void {
    return this.#connection.listen(listener);
  }

  listTools(options: RequestOptions = {}): Promise<Listing<ToolDefinition>> {
    return this.#list(TOOLS, 'tools', options);
  }

  listResources(options: RequestOptions = {}): Promise<Listing<ResourceEntry>> {
    return this.#list(RESOURCES, 'resources', options);
  }

  listResourceTemplates(options: RequestOptions = {}): Promise<Listing<ResourceTemplate>> {
    return this.#list(TEMPLATES, 'resources', options);
  }

  listPrompts(options: RequestOptions = {}): Promise<Listing<PromptEntry>> {
    return this.#list(PROMPTS, 'prompts', options);
  }

  async callTool(name: string, args: unknown, options: ToolCallOptions = {}): Promise<ToolResult> {
    const { timeouts, replay = 'safe' } = this.#connection.config;
    const {
      signal,
      onProgress,
      repeatable = false,
      timeoutMs = timeouts?.callMs ?? DEFAULT_MS.call,
    } = options;
    const deadline = {
      idleMs: timeoutMs,
      totalMs: timeouts?.callMaxMs ?? Math.max(DEFAULT_MS.callMax, timeoutMs),
      signal,
      what: `the call of ${JSON.stringify(name)}`,
    };
    const params = { name, ...(isObject(args) ? { arguments: args } : {}) };
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await this.#request('tools/call', params, deadline, (progress) =>
          onProgress?.(progress),
        );
        return toToolResult(result);
      } catch (thrown) {
        const error = toPatchbayError(thrown, 'protocol-error');
        if (error.code !== 'connection-lost') throw error;
        const neverRan = error.details?.['neverSent'] === true;
        const again = replay !== 'never' && (neverRan || repeatable || replay === 'always');
        // What was never sent can be sent again without harm; what may have run is repeated once, if at all.
        if (again && attempt < (neverRan ? 4 : 2)) continue;
        throw neverRan ? error : outcomeUnknown(name, error);
      }
    }
  }

  async readResource(uri: string, options: RequestOptions = {}): Promise<readonly ContentPart[]> {
    const result = await this.#read('resources/read', { uri }, options);
    const contents =
      isObject(result) && Array.isArray(result['contents']) ? result['contents'] : [];
    return contents.map((item: unknown) => toResourcePart(item) ?? { type: 'unknown', raw: item });
  }

  async getPrompt(
    name: string,
    args: Readonly<Record<string, string>>,
    options: RequestOptions = {},
  ): Promise<{ readonly messages: readonly PromptMessage[] }> {
    return {
      messages: toPromptMessages(
        await this.#read('prompts/get', { name, arguments: args }, options),
      ),
    };
  }

  async complete(
    ref:
      | { readonly type: 'prompt'; readonly name: string }
      | { readonly type: 'resource'; readonly uri: string },
    argument: { readonly name: string; readonly value: string },
    options: RequestOptions = {},
  ): Promise<readonly string[]> {
    const wireRef =
      ref.type === 'prompt'
        ? { type: 'ref/prompt', name: ref.name }
        : { type: 'ref/resource', uri: ref.uri };
    const result = await this.#read('completion/complete', { ref: wireRef, argument }, options);
    const completion = isObject(result) ? result['completion'] : undefined;
    const values = isObject(completion) ? completion['values'] : undefined;
    return Array.isArray(values) ? values.flatMap((value: unknown) => text(value) ?? []) : [];
  }

  request(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options: RequestOptions = {},
  ): Promise<unknown> {
    return this.#read(method, params, options);
  }

  async #list<T>(
    list: WireList<T>,
    capability: string,
    options: RequestOptions,
  ): Promise<Listing<T>> {
    const { signal, timeoutMs = this.#connection.config.timeouts?.listMs ?? DEFAULT_MS.list } =
      options;
    await this.#connection.open(signal);
    // Asked only where it is announced: a server without prompts need not know the question.
    if (this.info.capabilities[capability] === undefined) return { items: [], problems: [] };
    const until = performance.now() + timeoutMs;
    return readAllPages(
      list,
      (cursor) =>
        this.#read(list.method, cursor === undefined ? {} : { cursor }, {
          ...(signal === undefined ? {} : { signal }),
          timeoutMs: Math.max(1, until - performance.now()),
        }),
      this.info.name ?? 'server',
    );
  }

  /** A question without consequences: asked once more if the connection was lost meanwhile. */
  async #read(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: RequestOptions,
  ): Promise<unknown> {
    const deadline = {
      idleMs: options.timeoutMs ?? DEFAULT_MS.read,
      signal: options.signal,
      what: method,
    };
    try {
      return await this.#request(method, params, deadline);
    } catch (error) {
      if (!PatchbayError.isInstance(error) || error.code !== 'connection-lost') throw error;
      return this.#request(method, params, deadline);
    }
  }

  #request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    deadline: Omit<Parameters<typeof withDeadline>[0], never>,
    onProgress?: (progress: { readonly progress: number }) => void,
  ): Promise<unknown> {
    return withDeadline(deadline, ({ signal, alive }) =>
      this.#connection.use(async (link) => {
        try {
          return await link.request(method, params, {
            signal,
            onProgress: (progress) => {
              alive();
              onProgress?.(progress);
            },
          });
        } catch (error) {
          const failure = requestError(error, link, method);
          if (failure.details?.['neverSent'] === true) this.#connection.retire(link);
          throw failure;
        }
      }, signal),
    );
  }
}

/** What a failed request came from: the connection, or the server's answer. */
function requestError(thrown: unknown, link: Link, method: string): PatchbayError {
  if (PatchbayError.isInstance(thrown)) return thrown;
  const code: unknown = isCoded(thrown) ? thrown.code : undefined;
  if (link.lost !== undefined) {
    return new PatchbayError('connection-lost', link.lost.message, {
      cause: thrown,
      ...(link.lost.details ? { details: link.lost.details } : {}),
    });
  }
  if (code === 'CONNECTION_CLOSED' || code === 'NOT_CONNECTED') {
    return new PatchbayError('connection-lost', 'The connection to the server was closed.', {
      cause: thrown,
      ...(code === 'NOT_CONNECTED' ? { details: { neverSent: true } } : {}),
    });
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new PatchbayError('protocol-error', `The server refused ${method}: ${message}`, {
    cause: thrown,
    details: {
      ...(typeof code === 'number' ? { rpcCode: code } : {}),
      ...(isCoded(thrown) && thrown.data !== undefined ? { data: thrown.data } : {}),
    },
  });
}

function outcomeUnknown(name: string, cause: PatchbayError): PatchbayError {
  return new PatchbayError(
    'outcome-unknown',
    `The connection was lost during the call of ${JSON.stringify(name)}; it may or may not have run. Look before you call it again. (${cause.message})`,
    { cause, details: { ...cause.details, tool: name } },
  );
}

function isCoded(value: unknown): value is { readonly code: unknown; readonly data?: unknown } {
  return typeof value === 'object' && value !== null && 'code' in value;
}
