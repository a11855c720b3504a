import {
  changeSource,
  PatchbayError,
  servesSkills,
  toolsFromSource,
  withSignal,
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
  type McpResource,
  type OpenSkill,
  type Problem,
  type PromptEntry,
  type ResourceEntry,
  type ResourceTemplate,
  type ServerConfig,
  type SkillEntry,
  type SkillResource,
  type Tool,
  type ToolAnnotations,
  type ToolCallOptions,
  type ToolDefinition,
  type ToolResult,
} from '@patchbay/protocols';

import { Burst } from './burst.ts';
import { ListReader, until, type Question } from './list-reader.ts';
import { promptArguments } from './prompt-arguments.ts';
import { toMcpUri } from './resource-uri.ts';
import { ServedSkills } from './served-skills.ts';
import { ServerConnections } from './server-connections.ts';
import { ServerLists, type Lists } from './server-lists.ts';
import { INVALID_PARAMS, ServerResources } from './server-resources.ts';
import { difference, keepDefinitions, namePasses, passes, type ToolFilter } from './tool-list.ts';

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
  /**
   * What becomes of its skills whose files are made when they are asked for, so that nothing about them can be verified.
   * Default: they are left out, with a problem.
   */
  readonly dynamicSkills?: 'refuse' | 'read';
}

/** Which lists a notification is about, and what it means for those who listen. */
const CHANGES: Readonly<
  Record<string, { readonly lists: readonly (keyof Lists)[]; readonly kind: ChangeKind }>
> = {
  'notifications/tools/list_changed': { lists: ['tools'], kind: 'tools_changed' },
  'notifications/resources/list_changed': {
    // There is no notification for skills: servers say that their resources changed. (Skills over MCP)
    lists: ['resources', 'templates', 'skills'],
    kind: 'resources_changed',
  },
  'notifications/prompts/list_changed': { lists: ['prompts'], kind: 'prompts_changed' },
};

/** One MCP server: its tools, resources, skills and prompts. (RFC-0051 "McpServerCap") */
export class McpServerCapability
  implements Capability, McpResource, SkillResource, CommandResource, ChangeObservable
{
  readonly id: string;
  readonly #server: ServerConnections;
  readonly #options: McpServerOptions;
  readonly #changes: ChangeSource;
  readonly #lists = new ServerLists();
  readonly #tools = new WeakMap<ToolDefinition, Tool>();
  /** Of each list that was called from: a call does not look through all of its tools. */
  readonly #byName = new WeakMap<readonly ToolDefinition[], ReadonlyMap<string, ToolDefinition>>();
  readonly #burst = new Burst();
  readonly #static: readonly ToolDefinition[];
  /** A lazy server was used: from now on its own list counts. */
  #used = false;
  /** The server's own list is another one than the one that was known beforehand. */
  #differs: Problem | undefined;
  /** Moves when an answer may have become another one; not with every notification. */
  #revision = 0;
  readonly #reader: ListReader;
  readonly #resources: ServerResources;
  readonly #skills: ServedSkills;

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
    this.#reader = new ListReader({
      id,
      server: this.#server,
      lists: this.#lists,
      connected: (asker) => this.#connected(asker),
    });
    this.#resources = new ServerResources(id, this.#server, this.#reader);
    this.#skills = new ServedSkills({
      id,
      server: this.#server,
      reader: this.#reader,
      lists: this.#lists,
      allowDynamic: options.dynamicSkills === 'read',
      changed: () => this.#changed('skills_changed'),
    });
    this.#static = keepDefinitions(
      [],
      tools.map((tool) => Object.freeze({ ...tool })),
      options,
    );
    this.#changes = changeSource(id);
    this.changes = this.#changes.subscribe;
  }

  async tools(context: CompileContext): Promise<readonly Tool[]> {
    return toolsFromSource(this.id, this, await this.listTools(context), this.#tools);
  }

  /** Differs when an answer may have become another one: also when the time of a list is over. */
  revision(): number {
    if (this.#lists.sweep()) this.#revision++;
    return this.#revision;
  }

  async listTools(context: CompileContext): Promise<readonly ToolDefinition[]> {
    if (this.#isAsleep) return this.#static;
    const listing = await this.#toolList(this.#reader.question(context));
    this.#reader.report(listing, context);
    if (this.#differs !== undefined) context.report(this.#differs);
    return listing.items;
  }

  #toolList(question: Question): Promise<Listing<ToolDefinition>> {
    return this.#reader.read('tools', question, async (client, before) => {
      const listing = await client.listTools(until(question.signal));
      const items = keepDefinitions(before?.items ?? this.#static, listing.items, this.#options);
      if (before === undefined && listing.incomplete !== true) this.#compare(items);
      return { ...listing, items };
    });
  }

  /** What was known beforehand is corrected by what the server has, and the difference is said. */
  #compare(items: readonly ToolDefinition[]): void {
    const { lazy, tools } = this.#options;
    if (lazy !== true || tools === undefined) return;
    const how = difference(this.#static, items);
    const was = this.#differs?.message;
    this.#differs =
      how === undefined
        ? undefined
        : {
            source: this.id,
            code: 'tools-differ',
            severity: 'warning',
            message: `The server "${this.id}" has other tools than its configuration says: ${how}. The server's own count; mend \`tools\`.`,
          };
    if (this.#differs?.message !== was) this.#changed('tools_changed');
  }

  async callTool(name: string, args: unknown, context?: CallContext): Promise<ToolResult> {
    const asker: AcquireOptions = context ?? {};
    const offered =
      this.#definition(name, asker) ?? (await this.#readDefinition(name, asker, asker.signal));
    const annotations = offered?.annotations;
    const lease = await this.#reader.acquire(asker);
    // `await using` says the same, and costs every call its helpers while it is compiled for engines without it.
    try {
      return await lease.value.callTool(name, args, wishes(context, annotations));
    } catch (error) {
      throw (await this.#isGone(name, error, asker)) ? this.#unavailable(name, error) : error;
    } finally {
      await lease.close();
    }
  }

  /**
   * The definition of a tool that is not known yet but may be called. What is decided by its claims needs the list.
   * @throws PatchbayError `tool-unavailable` for what the filter leaves out
   */
  async #readDefinition(
    name: string,
    asker: AcquireOptions,
    signal: AbortSignal | undefined,
  ): Promise<ToolDefinition | undefined> {
    const { hints } = this.#options;
    if (!namePasses(this.#options, name)) throw this.#unavailable(name);
    if (hints === undefined) return undefined;
    const { items } = await this.#toolList({ asker, signal, report: () => undefined });
    const listed = this.#named(items, name);
    if (listed === undefined || !passes(this.#options, listed)) throw this.#unavailable(name);
    return listed;
  }

  /** The first connection of a lazy server is when its own list begins to count. */
  #connected(asker: AcquireOptions): void {
    if (!this.#isAsleep) return;
    this.#used = true;
    this.#revision++;
    // Nobody waits for it. If it fails, whoever asks for the list is told.
    void this.#toolList({ asker, signal: undefined, report: () => undefined }).catch(
      () => undefined,
    );
  }

  get #isAsleep(): boolean {
    return this.#options.lazy === true && !this.#used;
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

  listResources(context: CompileContext): Promise<readonly ResourceEntry[]> {
    return this.#resources.list(context);
  }

  /** What its templates expand to can be read here: `mcp://<id>/…` with their expressions as they are. */
  listResourceTemplates(context: CompileContext): Promise<readonly ResourceTemplate[]> {
    return this.#resources.listTemplates(context);
  }

  readResource(uri: string, context: CompileContext): Promise<readonly ContentPart[]> {
    return this.#resources.read(uri, context);
  }

  /** By the server's lists. Whether what a template covers is there is found by reading it. */
  resourceExists(uri: string, context: CompileContext): Promise<boolean> {
    return this.#resources.exists(uri, context);
  }

  /** Keeps the connection for as long as updates are wanted. */
  watchResource(uri: string, context: CompileContext): Promise<() => Promise<void>> {
    return this.#resources.watch(uri, context);
  }

  /** Skills of the server. A lazy server is not asked before it is used. */
  async listSkills(context: CompileContext): Promise<readonly SkillEntry[]> {
    return this.#isAsleep ? [] : this.#skills.list(context);
  }

  async openSkill(uri: string, context: CompileContext): Promise<OpenSkill | undefined> {
    return this.#skills.open(uri, context);
  }

  async skillExists(uri: string, context: CompileContext): Promise<boolean> {
    return this.#isAsleep ? false : this.#skills.exists(uri, context);
  }

  async listCommands(context: CompileContext): Promise<readonly CommandEntry[]> {
    const listing = await this.#prompts(context);
    this.#reader.report(listing, context);
    return listing.items.map((prompt) => ({
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
  }

  async getCommand(
    name: string,
    args: CommandArguments,
    context: CompileContext,
  ): Promise<CommandPrompt> {
    const { items } = await this.#prompts(context);
    const prompt = items.find((item) => item.name === name);
    if (prompt === undefined) {
      throw new PatchbayError('not-found', `The server "${this.id}" has no prompt "${name}".`, {
        source: this.id,
      });
    }
    const values = promptArguments(prompt, args, this.id);
    await using lease = await this.#reader.acquire(this.#server.askerOf(context), context.signal);
    return lease.value.getPrompt(name, values, { signal: context.signal });
  }

  async completeArgument(
    name: string,
    argument: string,
    value: string,
    context: CompileContext,
    given?: Readonly<Record<string, string>>,
  ): Promise<readonly string[]> {
    await using lease = await this.#reader.acquire(this.#server.askerOf(context), context.signal);
    if (lease.value.info.capabilities['completions'] === undefined) return [];
    return lease.value.complete(
      { type: 'prompt', name },
      { name: argument, value },
      { signal: context.signal, ...(given === undefined ? {} : { given }) },
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
    await this.#resources.close();
    this.#server.close();
    this.#burst.stop();
    this.#lists.clear();
  }

  #prompts(context: CompileContext): Promise<Listing<PromptEntry>> {
    return this.#reader.read('prompts', this.#reader.question(context), (client) =>
      client.listPrompts({ signal: context.signal }),
    );
  }

  #notified(key: string, method: string, params: unknown): void {
    const change = CHANGES[method];
    if (change !== undefined) {
      for (const list of change.lists) this.#lists.known(key)?.[list].invalidate();
      this.#burst.hit(JSON.stringify([key, method]), () => {
        this.#changed(change.kind);
        const client = this.#server.heard(key);
        const ofSkills = change.lists.includes('skills') && client !== undefined;
        if (ofSkills && servesSkills(client.info)) this.#changed('skills_changed');
      });
    } else if (method === 'notifications/resources/updated') {
      const uri = (params as { readonly uri?: unknown } | undefined)?.uri;
      if (typeof uri === 'string') this.#changes.emit('resource_updated', toMcpUri(this.id, uri));
    } else if (method === 'patchbay/connection') {
      this.#changed('status_changed');
      const { state } = (params ?? {}) as { readonly state?: unknown };
      // One that is only lost keeps its tools: it is rebuilt at the next use. (RFC-0051 diagram 6)
      if (state === 'degraded') this.#changed('tools_changed');
    } else {
      this.#changes.emit(method);
    }
  }

  #changed(kind: ChangeKind): void {
    this.#revision++;
    this.#changes.emit(kind);
  }

  #definition(name: string, asker: AcquireOptions): ToolDefinition | undefined {
    const listed = this.#lists.known(this.#server.keyOf(asker))?.tools.value?.items ?? this.#static;
    return this.#named(listed, name);
  }

  #named(list: readonly ToolDefinition[], name: string): ToolDefinition | undefined {
    let byName = this.#byName.get(list);
    if (byName === undefined) {
      byName = new Map(list.map((definition) => [definition.name, definition]));
      this.#byName.set(list, byName);
    }
    return byName.get(name);
  }
}

/** What is wished for a call. */
function wishes(
  context: CallContext | undefined,
  annotations: ToolAnnotations | undefined,
): ToolCallOptions {
  const made: { -readonly [K in keyof ToolCallOptions]: ToolCallOptions[K] } = {
    repeatable: annotations?.readOnlyHint === true || annotations?.idempotentHint === true,
  };
  if (context === undefined) return made;
  const { timeoutMs, onProgress, handlers, stop } = context;
  if (timeoutMs !== undefined) made.timeoutMs = timeoutMs;
  if (onProgress !== undefined) made.onProgress = onProgress;
  if (handlers !== undefined) made.handlers = handlers;
  if (stop !== undefined) return withSignal(Object.assign(made, { stop }));
  made.signal = context.signal;
  return made;
}
