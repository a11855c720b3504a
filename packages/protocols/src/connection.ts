import type { Capability } from './capability.ts';
import type { ContentPart, PromptMessage } from './content.ts';
import type { CommandArgument } from './command-resource.ts';
import type { ResourceEntry, ResourceTemplate } from './mcp-resource.ts';
import type { Problem } from './problem.ts';
import type { Identity, Scope } from './scope.ts';
import type { ServedFileContent, ServedSkill } from './served-skill.ts';
import type { ServerAuthorization } from './server-authorization.ts';
import type { Stop } from './stop.ts';
import type { Progress, ToolDefinition, ToolResult } from './tool.ts';

/** What every kind of server configuration has. */
export interface ServerOptions {
  /** For people: what `inspect()` and problems call it. Not part of what makes two configurations the same. */
  readonly label?: string;
  /**
   * Who shares the connection: those of one identity (default; without identities that is everybody), `everyone`, or
   * nobody but one `session`.
   */
  readonly sharing?: 'identity' | 'everyone' | 'session';
  /** All in milliseconds. */
  readonly timeouts?: {
    /** From the start of the process to the end of the handshake. Default 30,000. */
    readonly connectMs?: number;
    /** A whole list, all pages. Default 30,000. */
    readonly listMs?: number;
    /** A call without a sign of life. Default 300,000. */
    readonly callMs?: number;
    /** A call with signs of life. Default 3,600,000. */
    readonly callMaxMs?: number;
  };
  /** `safe` (default): a call is sent again only if it provably never ran, or is annotated read-only or idempotent. */
  readonly replay?: 'safe' | 'always' | 'never';
  /** Answers to what this server asks, instead of those of whoever connects. Others make another connection. */
  readonly handlers?: ServerRequestHandlers;
}

/** A server that runs as a child process. */
export interface StdioServerConfig extends ServerOptions {
  readonly type?: 'stdio';
  /** A program, looked up in PATH. Never given to a shell. */
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to a minimal environment; the program's own environment is not passed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server that is reached over HTTP. */
export interface HttpServerConfig extends ServerOptions {
  readonly type?: 'http' | 'sse';
  readonly url: string;
  /** May depend on whose call it is; asked at every connect. */
  readonly headers?:
    | Readonly<Record<string, string>>
    | ((
        identity: Identity | undefined,
      ) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
  readonly fetch?: typeof globalThis.fetch;
  /** How to get access where the server asks for it (HTTP 401). Not with an `authorization` among the headers. */
  readonly auth?: ServerAuthorization;
}

/**
 * A client that the program made itself: of `@modelcontextprotocol/client` 2 or of `@modelcontextprotocol/sdk` 1,
 * recognised by its methods. Its owner closes it.
 */
export interface InjectedServerConfig extends ServerOptions {
  readonly type?: 'client';
  readonly client: object;
}

export type ServerConfig = StdioServerConfig | HttpServerConfig | InjectedServerConfig;

/** For whom a connection is asked for. */
export interface AcquireOptions {
  readonly scope?: Scope;
  readonly identity?: Identity | undefined;
  /** Ends the waiting, not the connection. */
  readonly signal?: AbortSignal;
  /** As in {@link ToolCallOptions}. */
  readonly stop?: Stop;
}

/** A claim on something shared. While it is held, the thing is not closed for being idle. */
export interface Lease<T> extends AsyncDisposable {
  readonly value: T;
  /** Gives it back. Twice is harmless. */
  close(): Promise<void>;
}

/** Gives connections to MCP servers. The connection pool is one. */
export interface ConnectionProvider {
  /**
   * A lease on the connection for `config` and whoever asks; made if there is none, shared if there is one.
   * @throws PatchbayError `connect-failed`, `unavailable` (with `details.retryAt`), `identity-required`,
   * `pool-exhausted`, `aborted`, `closed`
   */
  acquire(config: ServerConfig, options?: AcquireOptions): Promise<Lease<McpClient>>;
  /** How the connection for `config` stands, without making one. */
  status?(config: ServerConfig, options?: AcquireOptions): ConnectionStatus;
}

/** How a connection stands. */
export interface ConnectionStatus {
  readonly state: 'idle' | 'connecting' | 'ready' | 'lost' | 'degraded' | 'closed';
  /** ISO 8601. */
  readonly since: string;
  /** ISO 8601. */
  readonly retryAt?: string;
  /** Of a child process. */
  readonly pid?: number;
  readonly calls?: number;
  readonly lastError?: Problem;
}

/** Who a server says it is. For display, never for security. */
export interface ServerInfo {
  readonly name?: string;
  readonly version?: string;
  readonly protocolVersion?: string;
  /** `modern`: 2026-07-28 and later, stateless. `legacy`: earlier, with `initialize`. */
  readonly era?: 'modern' | 'legacy';
  readonly instructions?: string;
  /** As announced: `tools`, `resources`, `prompts`, `completions` … */
  readonly capabilities: Readonly<Record<string, unknown>>;
}

/** A list, as far as it could be read. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** Entries that were left out, pages that were not read. */
  readonly problems: readonly Problem[];
  /** A page could not be read: there is more, but it is not known what. */
  readonly incomplete?: boolean;
  /** How long the server says that the list may be taken as it is, in milliseconds. Absent: it did not say. */
  readonly ttlMs?: number;
}

/** A prompt as a list shows it. (MCP `prompts/list`) */
export interface PromptEntry {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments?: readonly CommandArgument[];
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** How long, and until when. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** In milliseconds, without a sign of life. */
  readonly timeoutMs?: number;
}

/** Options of a completion. */
export interface CompleteOptions extends RequestOptions {
  /** Values of other arguments that are known already: the completions may depend on them. */
  readonly given?: Readonly<Record<string, string>>;
}

/** Options of a call. */
export interface ToolCallOptions extends RequestOptions {
  /** The same as `signal`, and counts before it: then `signal` is not read, so that none has to be made. */
  readonly stop?: Stop | undefined;
  readonly onProgress?: (progress: Progress) => void;
  readonly handlers?: ServerRequestHandlers;
  /** The tool is annotated read-only or idempotent, so that the call may be sent again when its fate is unknown. */
  readonly repeatable?: boolean;
}

/**
 * A connection to an MCP server: the port between `mcp` and whoever makes connections. No class of an SDK shows
 * through. It outlives the process or socket behind it: a lost one is rebuilt at the next use. Every method rejects with a {@link PatchbayError}: `aborted`, `timeout`, `connection-lost`,
 * `outcome-unknown`, `protocol-error` (with `details.rpcCode`), `not-supported`.
 */
export interface McpClient {
  readonly info: ServerInfo;
  /** Grows with every rebuilt connection: lists that were read before may be out of date. */
  readonly generation: number;
  listTools(options?: RequestOptions): Promise<Listing<ToolDefinition>>;
  callTool(name: string, args: unknown, options?: ToolCallOptions): Promise<ToolResult>;
  listResources(options?: RequestOptions): Promise<Listing<ResourceEntry>>;
  listResourceTemplates(options?: RequestOptions): Promise<Listing<ResourceTemplate>>;
  readResource(uri: string, options?: RequestOptions): Promise<readonly ContentPart[]>;
  listPrompts(options?: RequestOptions): Promise<Listing<PromptEntry>>;
  getPrompt(
    name: string,
    args: Readonly<Record<string, string>>,
    options?: RequestOptions,
  ): Promise<{ readonly messages: readonly PromptMessage[] }>;
  /** Values that an argument could have. */
  complete(
    ref:
      | { readonly type: 'prompt'; readonly name: string }
      | { readonly type: 'resource'; readonly uri: string },
    argument: { readonly name: string; readonly value: string },
    options?: CompleteOptions,
  ): Promise<readonly string[]>;
  /**
   * From now on updates of a resource come as `notifications/resources/updated`, also over the connections that replace
   * this one. Returns what ends it.
   */
  watchResource?(uri: string, options?: RequestOptions): Promise<() => Promise<void>>;
  /**
   * The skills that it serves; none where it does not say that it serves any. An entry that breaks the rules is left out, with
   * a problem. No file is read. (Skills over MCP)
   */
  listSkills?(options?: RequestOptions): Promise<Listing<ServedSkill>>;
  /**
   * The skill whose SKILL.md has this URI, in a list or not; `undefined` if there is none.
   * @throws PatchbayError `skill-changed` if the answer breaks the rules
   */
  getSkill?(uri: string, options?: RequestOptions): Promise<ServedSkill | undefined>;
  /**
   * Reads SKILL.md, or the file at `reference` (a path within the skill, or a URI), and compares it with what was announced.
   * @throws PatchbayError `not-found` for a file that the skill does not list (nothing is asked for), `too-large`,
   * `skill-changed` (with `details.reason`: `size`, `digest`, `frontmatter`, `missing`) where it is something else, or not there:
   * nothing of the skill may be used then
   */
  readSkill?(
    skill: ServedSkill,
    reference?: string,
    options?: RequestOptions,
  ): Promise<ServedFileContent>;
  /** Anything else. The answer is not validated. */
  request(
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options?: RequestOptions,
  ): Promise<unknown>;
  /**
   * Notifications of the server, whichever process or socket they come over. `patchbay/connection` says that the
   * connection was made, lost, or given up. Returns what ends it.
   */
  onNotification(listener: (method: string, params: unknown) => void): () => void;
}

/**
 * Answers to what a server may ask, and ears for what it tells. Shapes as MCP defines them. Only what has a handler where the
 * connection is made (whoever connects, or the server's own) is announced to servers. The handlers of a call are asked
 * instead, for what was announced, where it is certain that the server asks for the sake of that call.
 */
export interface ServerRequestHandlers {
  /**
   * Asks a user: `params` has `mode` `form` (or none) with a `requestedSchema`, or `mode` `url` with a `url` that is to be
   * shown whole before anybody opens it. Answers `{ action: 'accept', content }`, `decline`, or `cancel`; defaults of the
   * schema are filled in.
   */
  elicitation?(
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** Asks a model. (Deprecated in MCP since 2026-07-28) */
  sampling?(
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** Which folders it may work in. (Deprecated in MCP since 2026-07-28) */
  roots?(signal: AbortSignal): Promise<readonly { readonly uri: string; readonly name?: string }[]>;
  /** What the server logs: `level`, `logger`, `data`. Text of others. */
  log?(entry: Readonly<Record<string, unknown>>): void;
  /** A sign of life of any request; that of a call is told to its own `onProgress` too. */
  progress?(progress: Progress, of: { readonly method: string; readonly name?: string }): void;
}

/** Makes a capability of a server's configuration. How a skill that embeds servers gets them, without knowing MCP. */
export type ServerFactory = (id: string, config: ServerConfig) => Capability;
