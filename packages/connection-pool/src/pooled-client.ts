import {
  PatchbayError,
  servesSkills,
  stopBy,
  toPatchbayError,
  type CompleteOptions,
  type ContentPart,
  type Listing,
  type McpClient,
  type PromptEntry,
  type PromptMessage,
  type RequestOptions,
  type ResourceEntry,
  type ResourceTemplate,
  type ServedFileContent,
  type ServedSkill,
  type ServerConfig,
  type ServerInfo,
  type ToolCallOptions,
  type ToolDefinition,
  type ToolResult,
} from '@patchbay/protocols';

import { isHttp, serverName } from './connection-key.ts';
import { withDeadline, type DeadlineOptions } from './deadline.ts';
import { headerParameters } from './http/header-parameters.ts';
import type { LinkRequest } from './link.ts';
import { getServedSkill, listServedSkills, readServedSkill, type Ask } from './served-skills.ts';
import type { SharedConnection } from './shared-connection.ts';
import { warning } from './warning.ts';
import { isObject, text, toPromptMessages, toResourcePart, toToolResult } from './wire-content.ts';
import { PROMPTS, readAllPages, RESOURCES, TEMPLATES, TOOLS, type WireList } from './wire-lists.ts';

/** MCP 2026-07-28, Streamable HTTP, "Server Validation". */
const HEADER_MISMATCH = -32_020;

const DEFAULT_MS = { list: 30_000, read: 60_000, call: 300_000, callMax: 3_600_000 };

/** The protocol side of a shared connection. Every use takes the connection that is there, or has it rebuilt. */
export class PooledClient implements McpClient {
  readonly #connection: SharedConnection;
  readonly #config: ServerConfig;

  /** Tools some of whose arguments are sent as headers too. */
  readonly #headerTools = new Map<string, ToolDefinition>();

  /** `config`: those who share a connection may wish for other timeouts, and for other calls to be repeated. */
  constructor(connection: SharedConnection, config: ServerConfig) {
    this.#connection = connection;
    this.#config = config;
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

  async listTools(options: RequestOptions = {}): Promise<Listing<ToolDefinition>> {
    const listing = await this.#list(TOOLS, 'tools', options);
    this.#headerTools.clear();
    if (!isHttp(this.#config) || this.info.era !== 'modern') return listing;
    const problems = [...listing.problems];
    const items = listing.items.filter((tool) => {
      const found = headerParameters(tool.inputSchema);
      if ('fault' in found) {
        const message = `${JSON.stringify(tool.name)} is left out: ${found.fault}.`;
        problems.push(warning(this.#source, message));
        return false;
      }
      if (found.length > 0) this.#headerTools.set(tool.name, tool);
      return true;
    });
    return { ...listing, items, problems };
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
    const deadline = this.#deadlineOf(name, options);
    const params = isObject(args) ? { name, arguments: args } : { name };
    let hasListed = false;
    for (let attempt = 1; ; attempt++) {
      try {
        const tool = this.#headerTools.get(name);
        const result = await this.#request('tools/call', params, deadline, options, tool);
        return toToolResult(result);
      } catch (thrown) {
        const error = toPatchbayError(thrown, 'protocol-error');
        if (error.details?.['rpcCode'] === HEADER_MISMATCH && !hasListed) {
          // It was not run: which arguments go into headers is in a list that was not read, or is another one now.
          hasListed = true;
          await this.listTools(deadline.stop && { signal: deadline.stop.signal });
        } else if (!this.#isRepeated(error, attempt, options.repeatable === true)) {
          if (!mayHaveRun(error)) throw error;
          throw outcomeUnknown(name, error, serverName(this.#config));
        }
      }
    }
  }

  #deadlineOf(name: string, options: ToolCallOptions): DeadlineOptions {
    const { timeouts } = this.#config;
    const { timeoutMs: idleMs = timeouts?.callMs ?? DEFAULT_MS.call } = options;
    return {
      idleMs,
      totalMs: timeouts?.callMaxMs ?? Math.max(DEFAULT_MS.callMax, idleMs),
      stop: options.stop ?? (options.signal && stopBy(options.signal)),
      what: () => `the call of ${JSON.stringify(name)} of ${this.#name}`,
    };
  }

  /** Whether a call that failed is made again. */
  #isRepeated(error: PatchbayError, attempt: number, repeatable: boolean): boolean {
    const { replay = 'safe' } = this.#config;
    if (error.code !== 'connection-lost') return false;
    // What never ran can be sent again without harm; where the server forgot us, once.
    const attempts = error.details?.['sessionEnded'] === true ? 2 : 4;
    if (!mayHaveRun(error)) return replay !== 'never' && attempt < attempts;
    // What may have run is repeated once, if at all; what the server answered to is not.
    return attempt === 1 && (replay === 'always' || (replay === 'safe' && repeatable));
  }

  async readResource(uri: string, options: RequestOptions = {}): Promise<readonly ContentPart[]> {
    const what = `the resource ${uri}`;
    const result = await this.#read('resources/read', { uri }, options, what);
    const contents =
      isObject(result) && Array.isArray(result['contents']) ? result['contents'] : [];
    return contents.map((item: unknown) => toResourcePart(item) ?? { type: 'unknown', raw: item });
  }

  async getPrompt(
    name: string,
    args: Readonly<Record<string, string>>,
    options: RequestOptions = {},
  ): Promise<{ readonly messages: readonly PromptMessage[] }> {
    const what = `the prompt ${JSON.stringify(name)}`;
    const answer = await this.#read('prompts/get', { name, arguments: args }, options, what);
    return { messages: toPromptMessages(answer) };
  }

  async complete(
    ref:
      | { readonly type: 'prompt'; readonly name: string }
      | { readonly type: 'resource'; readonly uri: string },
    argument: { readonly name: string; readonly value: string },
    { given, ...options }: CompleteOptions = {},
  ): Promise<readonly string[]> {
    const params = {
      ref: { ...ref, type: `ref/${ref.type}` },
      argument,
      ...(given === undefined ? {} : { context: { arguments: given } }),
    };
    const result = await this.#read('completion/complete', params, options);
    const completion = isObject(result) ? result['completion'] : undefined;
    const values = isObject(completion) ? completion['values'] : undefined;
    return Array.isArray(values) ? values.flatMap((value: unknown) => text(value) ?? []) : [];
  }

  async listSkills(options: RequestOptions = {}): Promise<Listing<ServedSkill>> {
    await this.#connection.open(options.signal);
    if (!servesSkills(this.info)) return { items: [], problems: [] };
    return listServedSkills(this.#pages('skills/list', options), this.#source);
  }

  async getSkill(uri: string, options: RequestOptions = {}): Promise<ServedSkill | undefined> {
    await this.#connection.open(options.signal);
    if (!servesSkills(this.info)) return undefined;
    return getServedSkill(this.#asking(`the skill ${uri}`, options), uri, options.signal);
  }

  readSkill(
    skill: ServedSkill,
    reference?: string,
    options: RequestOptions = {},
  ): Promise<ServedFileContent> {
    const ask = this.#asking(`a file of the skill ${skill.uri}`, options);
    return readServedSkill(ask, skill, reference, options.signal);
  }

  #asking(what: string, { timeoutMs }: RequestOptions): Ask {
    return (method, params, signal) =>
      this.#read(
        method,
        params,
        { signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
        what,
      );
  }

  watchResource(uri: string, options: RequestOptions = {}): Promise<() => Promise<void>> {
    const what = () => `the subscription to ${uri} of ${this.#name}`;
    const { signal, timeoutMs: idleMs = DEFAULT_MS.read } = options;
    return withDeadline({ idleMs, stop: signal && stopBy(signal), what }, (deadline) =>
      this.#connection.watch(uri, what, deadline.stop.signal),
    );
  }

  request(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options: RequestOptions = {},
  ): Promise<unknown> {
    return this.#read(method, params, options);
  }

  /** What problems of a list are said to come from. */
  get #source(): string {
    return this.#config.label ?? this.info.name ?? 'server';
  }

  /** For messages. */
  get #name(): string {
    const { label } = this.#config;
    return label === undefined ? serverName(this.#config) : JSON.stringify(label);
  }

  async #list<T>(
    list: WireList<T>,
    capability: string,
    options: RequestOptions,
  ): Promise<Listing<T>> {
    await this.#connection.open(options.signal);
    // Asked only where it is announced: a server without prompts need not know the question.
    if (this.info.capabilities[capability] === undefined) return { items: [], problems: [] };
    return readAllPages(list, this.#pages(list.method, options), this.#source);
  }

  /** Asks for one page; all of them together have the time of a list. */
  #pages(
    method: string,
    { signal, timeoutMs = this.#config.timeouts?.listMs ?? DEFAULT_MS.list }: RequestOptions,
  ): (cursor: string | undefined) => Promise<unknown> {
    const until = performance.now() + timeoutMs;
    return (cursor) =>
      this.#read(method, cursor === undefined ? {} : { cursor }, {
        ...(signal === undefined ? {} : { signal }),
        timeoutMs: Math.max(1, until - performance.now()),
      });
  }

  /** A question without consequences: asked once more if the connection was lost meanwhile. */
  async #read(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: RequestOptions,
    what = `the request ${method}`,
  ): Promise<unknown> {
    const deadline = {
      idleMs: options.timeoutMs ?? DEFAULT_MS.read,
      stop: options.signal && stopBy(options.signal),
      what: () => `${what} of ${this.#name}`,
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
    deadline: DeadlineOptions,
    { onProgress, handlers }: Pick<ToolCallOptions, 'onProgress' | 'handlers'> = {},
    tool?: ToolDefinition,
  ): Promise<unknown> {
    return withDeadline(deadline, (running) => {
      const { stop } = running;
      const request: LinkRequest = {
        stop,
        what: deadline.what,
        handlers,
        tool,
        attended: onProgress !== undefined,
        onProgress: (progress) => {
          running.alive();
          onProgress?.(progress);
        },
      };
      return this.#connection.use((link) => link.request(method, params, request), stop);
    });
  }
}

/** Whether a failed call may have had its effect. */
function mayHaveRun({ code, details }: PatchbayError): boolean {
  if (details?.['neverRan'] === true) return false;
  // The answer was too large to be read; where it is not known whose it was, the connection is gone.
  if (code === 'connection-lost' || (code === 'too-large' && details?.['limit'] === undefined))
    return true;
  // A server that answers with 5xx may have failed in the middle.
  return (
    code === 'protocol-error' && typeof details?.['status'] === 'number' && details['status'] >= 500
  );
}

function outcomeUnknown(tool: string, cause: PatchbayError, server: string): PatchbayError {
  return new PatchbayError(
    'outcome-unknown',
    `The connection to ${server} was lost during the call of ${JSON.stringify(tool)}; it may or may not have run. Look before you call it again. (${cause.message})`,
    { cause, details: { ...cause.details, tool } },
  );
}
