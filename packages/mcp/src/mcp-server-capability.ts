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
  type ResourceEntry,
  type ResourceTemplate,
  type ServerConfig,
  type Tool,
  type ToolDefinition,
  type ToolResult,
} from '@patchbay/protocols';

import { promptArguments } from './prompt-arguments.ts';
import { emptyLists, type Kept, type Lists } from './per-connection.ts';
import { toMcpUri, toServerUri } from './resource-uri.ts';
import { keepDefinitions, type ToolFilter } from './tool-list.ts';

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
  readonly #server: ServerConfig;
  readonly #connections: ConnectionProvider;
  readonly #options: McpServerOptions;
  readonly #changes: ChangeSource;
  /** By what `sharing` keeps apart. A list never crosses an identity. */
  readonly #lists = new Map<string, Lists>();
  readonly #tools = new WeakMap<ToolDefinition, Tool>();
  readonly #static: readonly ToolDefinition[];
  readonly #heard = new Map<string, () => void>();
  /** A lazy server was used: from now on its own list counts. */
  #used = false;

  readonly revision: () => number;
  readonly changes: ChangeSource['subscribe'];

  constructor(options: McpServerOptions) {
    const { id, server, connections, tools = [] } = options;
    if (typeof id !== 'string' || id === '')
      throw new PatchbayError('invalid-id', 'An MCP server needs an id.');
    this.id = id;
    this.#server = { label: id, ...server };
    this.#connections = connections;
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
    const listing = await this.#list('tools', context, async (client, before) => {
      const { items, problems } = await client.listTools({ signal: context.signal });
      return {
        items: keepDefinitions(before?.items ?? this.#static, items, this.#options),
        problems,
      };
    });
    this.#report(listing, context);
    return listing.items;
  }

  async callTool(name: string, args: unknown, context?: CallContext): Promise<ToolResult> {
    const { signal, timeoutMs, onProgress, handlers } = context ?? {};
    const asker = context ?? {};
    const annotations = this.#definition(name, asker)?.annotations;
    await using lease = await this.#acquire(asker, signal);
    const wasUsed = this.#used;
    this.#used = true;
    const result = await lease.value.callTool(name, args, {
      repeatable: annotations?.readOnlyHint === true || annotations?.idempotentHint === true,
      ...(signal === undefined ? {} : { signal }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(onProgress === undefined ? {} : { onProgress }),
      ...(handlers === undefined ? {} : { handlers }),
    });
    // The first use of a lazy server: its own list replaces the one that was known beforehand.
    if (this.#options.lazy === true && !wasUsed) this.#changes.emit('tools_changed');
    return result;
  }

  async listResources(context: CompileContext): Promise<readonly ResourceEntry[]> {
    const listing = await this.#list('resources', context, async (client) => {
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
    await using lease = await this.#acquire(this.#asker(context), context.signal);
    const listing = await lease.value.listResourceTemplates({ signal: context.signal });
    this.#report(listing, context);
    return listing.items;
  }

  async readResource(uri: string, context: CompileContext): Promise<readonly ContentPart[]> {
    const serverUri = toServerUri(this.id, uri);
    await using lease = await this.#acquire(this.#asker(context), context.signal);
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
    await using lease = await this.#acquire(this.#asker(context), context.signal);
    return lease.value.getPrompt(name, values, { signal: context.signal });
  }

  async completeArgument(
    name: string,
    argument: string,
    value: string,
    context: CompileContext,
  ): Promise<readonly string[]> {
    await using lease = await this.#acquire(this.#asker(context), context.signal);
    if (lease.value.info.capabilities['completions'] === undefined) return [];
    return lease.value.complete(
      { type: 'prompt', name },
      { name: argument, value },
      { signal: context.signal },
    );
  }

  status(): CapabilityStatus {
    const status = this.#connections.status?.(this.#server);
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
    for (const stop of this.#heard.values()) stop();
    this.#heard.clear();
    this.#lists.clear();
  }

  #prompts(context: CompileContext) {
    return this.#list('prompts', context, async (client) => {
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
    context: CompileContext,
    ask: (client: McpClient, before: ValueOf<Lists[K]> | undefined) => Promise<ValueOf<Lists[K]>>,
  ): Promise<ValueOf<Lists[K]>> {
    const asker = this.#asker(context);
    const kept = this.#listsOf(asker)[kind] as Kept<ValueOf<Lists[K]>>;
    const known = kept.value;
    const state = this.#connections.status?.(this.#server, asker).state;
    if (known !== undefined && (state === 'lost' || state === 'idle')) return known;
    try {
      await using lease = await this.#acquire(asker, context.signal);
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
      context.report(problemFrom(this.id, error));
      return known;
    }
  }

  #report(listing: Listing<unknown>, context: CompileContext): void {
    for (const problem of listing.problems) context.report({ ...problem, source: this.id });
  }

  async #acquire(asker: AcquireOptions, signal: AbortSignal | undefined) {
    const who = { ...asker, ...(signal === undefined ? {} : { signal }) };
    const lease = await this.#connections.acquire(this.#server, who).catch((error: unknown) => {
      throw this.#located(error);
    });
    this.#hear(this.#key(asker), lease.value);
    return lease;
  }

  /** A server that cannot be started is mended where it is configured. */
  #located(error: unknown): unknown {
    const { origin } = this.#options;
    if (origin === undefined || !PatchbayError.isInstance(error) || error.code !== 'connect-failed')
      return error;
    return new PatchbayError(error.code, `${error.message} It is configured in ${origin}.`, {
      cause: error.cause ?? error,
      source: this.id,
      ...(error.details === undefined ? {} : { details: error.details }),
    });
  }

  /** Listens to a connection once: it stays the same while the processes behind it come and go. */
  #hear(key: string, client: McpClient): void {
    if (this.#heard.has(key)) return;
    const stop = client.onNotification((method, params) => this.#notified(key, method, params));
    this.#heard.set(key, stop);
  }

  #notified(key: string, method: string, params: unknown): void {
    const change = CHANGES[method];
    if (change !== undefined) {
      this.#lists.get(key)?.[change.list].invalidate();
      this.#changes.emit(change.kind);
    } else if (method === 'notifications/resources/updated') {
      const uri = (params as { readonly uri?: unknown } | undefined)?.uri;
      if (typeof uri === 'string') this.#changes.emit('resource_updated', toMcpUri(this.id, uri));
    } else if (method === 'patchbay/connection') {
      if ((params as { readonly state?: string }).state === 'closed') {
        this.#heard.get(key)?.();
        this.#heard.delete(key);
      }
      this.#changes.emit('status_changed');
    }
  }

  #definition(name: string, asker: AcquireOptions): ToolDefinition | undefined {
    const listed = this.#lists.get(this.#key(asker))?.tools.value?.items ?? this.#static;
    return listed.find((definition) => definition.name === name);
  }

  #listsOf(asker: AcquireOptions): Lists {
    const key = this.#key(asker);
    const lists = this.#lists.get(key) ?? emptyLists();
    this.#lists.set(key, lists);
    return lists;
  }

  /** Reads of the context only what decides about the connection: who reads less is asked less often. */
  #asker(context: CompileContext): AcquireOptions {
    const { sharing = 'identity' } = this.#server;
    if (sharing === 'everyone') return {};
    const { identity } = context;
    const who = identity === undefined ? {} : { identity };
    return sharing === 'session' ? { ...who, scope: context.scope } : who;
  }

  #key({ scope, identity }: AcquireOptions): string {
    const { sharing = 'identity' } = this.#server;
    if (sharing === 'everyone') return '';
    return JSON.stringify([
      identity?.id ?? '',
      sharing === 'session' ? (scope?.session ?? '') : '',
    ]);
  }
}

type ValueOf<K> = K extends Kept<infer T> ? T : never;

/** The server is not there: its last list does not count any more. */
const GONE: ReadonlySet<string> = new Set([
  'connect-failed',
  'unavailable',
  'closed',
  'identity-required',
]);

/** Whether a URI fits a template (RFC 6570, as far as simple expressions go). */
function coveredBy(template: string, uri: string): boolean {
  const pattern = template
    .split(/(\{[^}]*\})/)
    .map((piece) => {
      if (!piece.startsWith('{')) return piece.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
      return piece.startsWith('{+') ? '.+' : '[^/]+';
    })
    .join('');
  return new RegExp(`^${pattern}$`, 's').test(uri);
}
