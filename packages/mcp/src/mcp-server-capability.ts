import {
  changeSource,
  PatchbayError,
  problemFrom,
  toolsFromSource,
  type AcquireOptions,
  type CallContext,
  type Capability,
  type CapabilityStatus,
  type ChangeKind,
  type ChangeObservable,
  type ChangeSource,
  type CommandArguments,
  type CommandEntry,
  type CommandPrompt,
  type CommandResource,
  type CompileContext,
  type ConnectionProvider,
  type ContentPart,
  type Listing,
  type McpClient,
  type McpResource,
  type Problem,
  type ResourceEntry,
  type ResourceTemplate,
  type ServerConfig,
  type Tool,
  type ToolDefinition,
  type ToolResult,
} from '@patchbay/protocols';

import { Burst } from './burst.ts';
import { promptArguments } from './prompt-arguments.ts';
import { emptyLists, type Kept, type Lists } from './per-connection.ts';
import { toMcpUri, toServerUri } from './resource-uri.ts';
import { ServerConnections } from './server-connections.ts';
import { keepDefinitions, passes, type ToolFilter } from './tool-list.ts';
import { coveredBy } from './uri-template.ts';

export interface McpServerOptions extends ToolFilter {
  /** The capability id: the first part of its tools' names. */
  readonly id: string;
  readonly server: ServerConfig;
  /** Who makes and shares the connections: the connection pool. */
  readonly connections: ConnectionProvider;
  /** Where the server is configured, for people: `.mcp.json:12`. Said when it cannot be reached. */
  readonly origin?: string;
  /**
   * Connect at the first call instead of at the first compile; until then `tools` are offered. (RFC-0051 "Lazy mode")
   */
  readonly lazy?: boolean;
  /** Tools as they are known beforehand, for a lazy server. */
  readonly tools?: readonly ToolDefinition[];
}

/** Which list a notification is about, and what it means for those who listen. */
const CHANGES: Readonly<Record<string, { readonly list: keyof Lists; readonly kind: ChangeKind }>> =
  {
    'notifications/tools/list_changed': { list: 'tools', kind: 'tools_changed' },
    'notifications/resources/list_changed': { list: 'resources', kind: 'resources_changed' },
    'notifications/prompts/list_changed': { list: 'prompts', kind: 'prompts_changed' },
  };

/** One MCP server: its tools, resources and prompts. (RFC-0051 "McpServerCap") */
export class McpServerCapability
  implements Capability, McpResource, CommandResource, ChangeObservable
{
  readonly id: string;
  readonly #server: ServerConnections;
  readonly #options: McpServerOptions;
  readonly #changes: ChangeSource;
  /** By what `sharing` keeps apart. A list never crosses an identity. */
  readonly #lists = new Map<string, Lists>();
  readonly #tools = new WeakMap<ToolDefinition, Tool>();
  readonly #burst = new Burst();
  readonly #static: readonly ToolDefinition[];
  /** A lazy server was used: from now on its own list counts. */
  #used = false;

  readonly revision: () => number;
  readonly changes: ChangeSource['subscribe'];

  constructor(options: McpServerOptions) {
    const { id, server, connections, tools = [] } = options;
    if (typeof id !== 'string' || id === '')
      throw new PatchbayError('invalid-id', 'An MCP server needs an id.');
    this.id = id;
    this.#server = new ServerConnections({
      id,
      server: { label: id, ...server },
      connections,
      origin: options.origin,
      hear: (key, method, params) => this.#notified(key, method, params),
    });
    this.#options = options;
    this.#static = keepDefinitions(
      [],
      tools.map((tool) => Object.freeze({ ...tool })),
      options,
    );
    this.#changes = changeSource(id);
    this.revision = this.#changes.revision;
    this.changes = this.#changes.subscribe;
  }

  async tools(context: CompileContext): Promise<readonly Tool[]> {
    return toolsFromSource(this.id, this, await this.listTools(context), this.#tools);
  }

  async listTools(context: CompileContext): Promise<readonly ToolDefinition[]> {
    if (this.#options.lazy === true && !this.#used) return this.#static;
    const listing = await this.#toolList(this.#question(context));
    this.#report(listing, context);
    return listing.items;
  }

  #toolList(question: Question): Promise<Listing<ToolDefinition>> {
    return this.#list('tools', question, async (client, before) => {
      const { items, problems } = await client.listTools(until(question.signal));
      return {
        items: keepDefinitions(before?.items ?? this.#static, items, this.#options),
        problems,
      };
    });
  }

  async callTool(name: string, args: unknown, context?: CallContext): Promise<ToolResult> {
    if (!passes(this.#options, name)) throw this.#unavailable(name);
    const { signal, timeoutMs, onProgress, handlers } = context ?? {};
    const asker = context ?? {};
    const annotations = this.#definition(name, asker)?.annotations;
    await using lease = await this.#server.acquire(asker, signal);
    const wasUsed = this.#used;
    this.#used = true;
    const calling = lease.value.callTool(name, args, {
      repeatable: annotations?.readOnlyHint === true || annotations?.idempotentHint === true,
      ...until(signal),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(onProgress === undefined ? {} : { onProgress }),
      ...(handlers === undefined ? {} : { handlers }),
    });
    const result = await calling.catch(async (error: unknown) => {
      throw (await this.#isGone(name, error, asker)) ? this.#unavailable(name, error) : error;
    });
    // The first use of a lazy server: its own list replaces the one that was known beforehand.
    if (this.#options.lazy === true && !wasUsed) this.#changes.emit('tools_changed');
    return result;
  }

  /** Whether a call failed because the server does not have the tool any more. */
  async #isGone(name: string, error: unknown, asker: AcquireOptions): Promise<boolean> {
    if (!PatchbayError.isInstance(error) || error.details?.['rpcCode'] !== INVALID_PARAMS)
      return false;
    const listing = this.#toolList({ asker, signal: undefined, report: () => undefined });
    const now = await listing.catch(() => undefined);
    return now !== undefined && now.items.every((definition) => definition.name !== name);
  }

  #unavailable(name: string, cause?: unknown): PatchbayError {
    return new PatchbayError(
      'tool-unavailable',
      `"${name}" of the server "${this.id}" is not available, or not any more.`,
      { source: this.id, cause },
    );
  }

  async listResources(context: CompileContext): Promise<readonly ResourceEntry[]> {
    const listing = await this.#list('resources', this.#question(context), async (client) => {
      const { items, problems } = await client.listResources({ signal: context.signal });
      return {
        items: items.map((entry) => ({ ...entry, uri: toMcpUri(this.id, entry.uri) })),
        problems,
      };
    });
    this.#report(listing, context);
    return listing.items;
  }

  async listResourceTemplates(context: CompileContext): Promise<readonly ResourceTemplate[]> {
    await using lease = await this.#server.acquire(this.#server.askerOf(context), context.signal);
    const listing = await lease.value.listResourceTemplates({ signal: context.signal });
    this.#report(listing, context);
    return listing.items;
  }

  async readResource(uri: string, context: CompileContext): Promise<readonly ContentPart[]> {
    const serverUri = toServerUri(this.id, uri);
    await using lease = await this.#server.acquire(this.#server.askerOf(context), context.signal);
    return lease.value.readResource(serverUri, { signal: context.signal });
  }

  /** By the server's list. What only a template covers is found by reading it. */
  async resourceExists(uri: string, context: CompileContext): Promise<boolean> {
    if ((await this.listResources(context)).some((entry) => entry.uri === uri)) return true;
    return (await this.listResourceTemplates(context)).some(({ uriTemplate }) =>
      coveredBy(uriTemplate, toServerUri(this.id, uri)),
    );
  }

  async listCommands(context: CompileContext): Promise<readonly CommandEntry[]> {
    const { listing, entries } = await this.#prompts(context);
    this.#report(listing, context);
    return entries;
  }

  async getCommand(
    name: string,
    args: CommandArguments,
    context: CompileContext,
  ): Promise<CommandPrompt> {
    const { listing } = await this.#prompts(context);
    const prompt = listing.items.find((item) => item.name === name);
    if (prompt === undefined) {
      throw new PatchbayError('not-found', `The server "${this.id}" has no prompt "${name}".`, {
        source: this.id,
      });
    }
    const values = promptArguments(prompt, args, this.id);
    await using lease = await this.#server.acquire(this.#server.askerOf(context), context.signal);
    return lease.value.getPrompt(name, values, { signal: context.signal });
  }

  async completeArgument(
    name: string,
    argument: string,
    value: string,
    context: CompileContext,
    given: Readonly<Record<string, string>> = {},
  ): Promise<readonly string[]> {
    await using lease = await this.#server.acquire(this.#server.askerOf(context), context.signal);
    if (lease.value.info.capabilities['completions'] === undefined) return [];
    return lease.value.complete(
      { type: 'prompt', name },
      { name: argument, value, given },
      { signal: context.signal },
    );
  }

  status(): CapabilityStatus {
    const status = this.#server.status();
    if (status === undefined) return { state: 'unknown' };
    const { state, since, retryAt, pid, calls, lastError } = status;
    return {
      state,
      since,
      ...(retryAt === undefined ? {} : { retryAt }),
      details: { pid, calls, lastError: lastError?.message },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#burst.stop();
    this.#lists.clear();
  }

  #prompts(context: CompileContext) {
    return this.#list('prompts', this.#question(context), async (client) => {
      const listing = await client.listPrompts({ signal: context.signal });
      const entries = listing.items.map((prompt): CommandEntry => ({
        name: prompt.name,
        description: prompt.description ?? prompt.title ?? '',
        origin: `mcp:${this.id}`,
        kind: 'prompt',
        precedence: 0,
        ...(prompt.arguments === undefined ? {} : { arguments: prompt.arguments }),
        hint: (prompt.arguments ?? [])
          .map((a) => (a.required === true ? `<${a.name}>` : `[${a.name}]`))
          .join(' '),
      }));
      return { listing, entries };
    });
  }

  /** A list as it is kept, or as the server has it now. While there is no connection, the last one still counts. */
  async #list<K extends keyof Lists>(
    kind: K,
    { asker, signal, report }: Question,
    ask: (client: McpClient, before: ValueOf<Lists[K]> | undefined) => Promise<ValueOf<Lists[K]>>,
  ): Promise<ValueOf<Lists[K]>> {
    const kept = this.#listsOf(asker)[kind] as Kept<ValueOf<Lists[K]>>;
    const known = kept.value;
    const state = this.#server.status(asker)?.state;
    if (known !== undefined && (state === 'lost' || state === 'idle')) return known;
    try {
      await using lease = await this.#server.acquire(asker, signal);
      const client = lease.value;
      if (known !== undefined && kept.isFresh(client.generation)) return known;
      return await kept.read(async () => {
        const { generation } = client;
        return { value: await ask(client, known), generation };
      });
    } catch (error) {
      // A server that is there but fails to list keeps the list of before; one that is not there has no tools.
      const gone = PatchbayError.isInstance(error) && GONE.has(error.code);
      if (known === undefined || gone) throw error;
      report(problemFrom(this.id, error));
      return known;
    }
  }

  #report(listing: Listing<unknown>, context: CompileContext): void {
    for (const problem of listing.problems) context.report({ ...problem, source: this.id });
  }

  #notified(key: string, method: string, params: unknown): void {
    const change = CHANGES[method];
    if (change !== undefined) {
      this.#lists.get(key)?.[change.list].invalidate();
      this.#burst.hit(JSON.stringify([key, change.list]), () => this.#changes.emit(change.kind));
    } else if (method === 'notifications/resources/updated') {
      const uri = (params as { readonly uri?: unknown } | undefined)?.uri;
      if (typeof uri === 'string') this.#changes.emit('resource_updated', toMcpUri(this.id, uri));
    } else if (method === 'patchbay/connection') {
      this.#changes.emit('status_changed');
    }
  }

  #definition(name: string, asker: AcquireOptions): ToolDefinition | undefined {
    const listed = this.#lists.get(this.#server.keyOf(asker))?.tools.value?.items ?? this.#static;
    return listed.find((definition) => definition.name === name);
  }

  #listsOf(asker: AcquireOptions): Lists {
    const key = this.#server.keyOf(asker);
    const lists = this.#lists.get(key) ?? emptyLists();
    this.#lists.set(key, lists);
    if (this.#lists.size > MAX_ASKERS) this.#lists.delete(this.#lists.keys().next().value!);
    return lists;
  }

  #question(context: CompileContext): Question {
    return {
      asker: this.#server.askerOf(context),
      signal: context.signal,
      report: (problem) => context.report(problem),
    };
  }
}

/** Who asks for a list, until when, and where problems go. */
interface Question {
  readonly asker: AcquireOptions;
  readonly signal: AbortSignal | undefined;
  readonly report: (problem: Problem) => void;
}

const until = (signal: AbortSignal | undefined): { readonly signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };

/** JSON-RPC "Invalid params": the answer to a tool that is not there. (MCP "Tools", error handling) */
const INVALID_PARAMS = -32_602;
/** For so many askers lists are kept; the oldest are read again. */
const MAX_ASKERS = 1_000;

type ValueOf<K> = K extends Kept<infer T> ? T : never;

/** The server is not there: its last list does not count any more. */
const GONE: ReadonlySet<string> = new Set([
  'connect-failed',
  'unavailable',
  'closed',
  'identity-required',
]);
