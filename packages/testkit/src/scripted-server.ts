import type { HttpServerConfig, StdioServerConfig } from '@patchbay/protocols';

import type { Protection } from './protection.ts';
import { question } from './scripted-execution.ts';
import { listenHttp } from './scripted-http.ts';
import {
  subscribed,
  type ScriptedExtension,
  type ScriptedMethod,
  type ScriptedPrompt,
  type ScriptedResource,
  type ScriptedState,
} from './scripted-session.ts';
import { listenStdio } from './scripted-stdio.ts';
import type { ScriptedTool } from './scripted-tool.ts';

/** What a scripted server is, and what it offers. */
export interface ScriptedServerOptions {
  readonly tools?: readonly ScriptedTool[];
  readonly resources?: readonly ScriptedResource[];
  readonly prompts?: readonly ScriptedPrompt[];
  readonly instructions?: string;
  /** Default: `stdio`, a child process for each connection. `http` is Streamable HTTP on a port of this machine. */
  readonly transport?: 'stdio' | 'http';
  /** `legacy` (default): 2025-11-25 and earlier. `modern`: 2026-07-28. */
  readonly era?: 'legacy' | 'modern';
  /** Answers to requests that are different from the usual ones, by method: `initialize`, `tools/list`, `completion/complete`. */
  readonly methods?: Readonly<Record<string, ScriptedMethod>>;
  /** Over HTTP: whom it lets in. Default: everybody. */
  readonly protection?: Protection;
}

/** A server that does what a test told it. Its counters live in the test: they survive the death of its processes. */
export interface ScriptedServer extends AsyncDisposable {
  /** For whoever connects: a `ConnectionPool`, an `McpServerCapability`. */
  readonly config: StdioServerConfig | HttpServerConfig;
  /** How often a tool ran. */
  executions(tool: string): number;
  /** How many handshakes there were. */
  readonly connections: number;
  /** How many calls a client gave up before they were answered. */
  readonly cancellations: number;
  /** Methods that were asked for, in order. */
  readonly requests: readonly string[];
  /** Statuses of the requests that its `protection` did not let in, in order. */
  readonly refusals: readonly (401 | 403)[];
  /** Offers other tools, and says so (`notifications/tools/list_changed`). */
  setTools(tools: readonly ScriptedTool[]): void;
  /**
   * Sends a notification to every client that listens: over HTTP, if none does yet, to the next one. Modern clients listen
   * after they asked for it (`subscriptions/listen` in `requests`).
   */
  notify(method: string, params?: Readonly<Record<string, unknown>>): void;
  /**
   * Asks clients something while it answers no call: `ping`, `roots/list`. What the first one answers.
   * @throws Error from a modern server, which may not do that, or if the client refuses
   */
  ask(method: string, params?: Readonly<Record<string, unknown>>): Promise<object>;
  /** Lets others in from now on: another authorization server, other scopes; `undefined`: everybody. */
  protect(protection: Protection | undefined): void;
  /** Ends all its processes, or cuts all its sockets. It can be reached again at once. */
  die(): void;
  close(): Promise<void>;
}

/**
 * An MCP server for tests of a client, without any SDK, so that it can also do what no SDK would.
 *
 * @example
 * await using server = await scriptedServer({ tools: [{ name: 'pay', onCall: 'die-after-execution' }] });
 */
export function scriptedServer(options: ScriptedServerOptions = {}): Promise<ScriptedServer> {
  return serveScript(options);
}

/** A scripted server that also answers to other methods. */
export async function serveScript(
  options: ScriptedServerOptions,
  extension?: ScriptedExtension,
): Promise<ScriptedServer> {
  const { tools = [], resources = [], prompts = [], transport = 'stdio' } = options;
  const checked = (protection: Protection | undefined) => {
    if (protection === undefined || transport === 'http') return protection;
    throw new Error('Only a server over HTTP can have a `protection`.');
  };
  const state: ScriptedState = {
    era: options.era ?? 'legacy',
    instructions: options.instructions,
    resources,
    prompts,
    extension,
    methods: new Map(Object.entries(options.methods ?? {})),
    tools,
    executions: new Map(),
    subscriptions: new Set(),
    asked: new Map(),
    suspended: new Map(),
    requests: [],
    refusals: [],
    protection: checked(options.protection),
    connections: 0,
    cancellations: 0,
  };
  const listener = await (transport === 'http' ? listenHttp(state) : listenStdio(state));
  const notify: ScriptedServer['notify'] = (method, params) => {
    if (state.era === 'legacy') {
      listener.broadcast({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) });
    }
    for (const { id, send } of state.subscriptions) send(subscribed(id, method, params));
  };
  return {
    config: listener.config,
    executions: (tool) => state.executions.get(tool) ?? 0,
    get connections() {
      return state.connections;
    },
    get cancellations() {
      return state.cancellations;
    },
    requests: state.requests,
    refusals: state.refusals,
    setTools: (next) => {
      state.tools = next;
      notify('notifications/tools/list_changed');
    },
    notify,
    ask: async (method, params = {}) => {
      if (state.era === 'modern')
        throw new Error('A modern server asks only as part of an answer.');
      const { id, answer } = question(state);
      listener.broadcast({ jsonrpc: '2.0', id, method, params });
      return await answer;
    },
    protect: (protection) => {
      state.protection = checked(protection);
    },
    die: () => listener.cut(),
    close: () => listener.close(),
    [Symbol.asyncDispose]: () => listener.close(),
  };
}
