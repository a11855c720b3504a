import { createProblemReport } from '@patchbay/adapter-kit';
import type { ExtensionView, Problem, Scope, ServerRequestHandlers } from '@patchbay/protocols';
import { createMiddleware, type AgentMiddleware } from 'langchain';

import { makeExecSettings } from './exec-settings.ts';
import { makeFaces } from './face-tool.ts';
import type { MediaOption } from './media-policy.ts';
import { modelRequest } from './model-request.ts';
import { makeMediaOf } from './result-media.ts';
import { endTurn, runContext, runState } from './run-turn.ts';
import { askAboutStep } from './step-approval.ts';
import { callTool } from './tool-call.ts';

export interface LangchainOptions {
  /**
   * Names the middleware, behind `patchbay-`: two of one name cannot be in one agent. Default: session and agent of the
   * view's scope.
   */
  readonly name?: string;
  /** Where media in tool results go. Default `auto`. */
  readonly media?: MediaOption;
  /** A longer text of a result is cut for the model; the artifact keeps it whole. Default 100,000; 0 is no limit. */
  readonly maxResultChars?: number;
  /** Larger media are not shown to the model; the artifact keeps them. In bytes; default 5,000,000; 0 shows none. */
  readonly maxMediaBytes?: number;
  /**
   * What a failing tool of the agent's own does. `to-model` (default): it is answered with its error, as `createAgent`
   * does without middleware. `throw`: the run ends, as it does beside any other middleware that wraps tool calls.
   */
  readonly ownToolErrors?: 'to-model' | 'throw';
  /**
   * Where a view has more tools than this, they carry `extras: { defer_loading: true }`: put `providerToolSearchMiddleware()`
   * behind ours, which lets a model of Anthropic or OpenAI find them. Default: never; above 128 tools a problem says so.
   */
  readonly deferAbove?: number;
  /** Answers to what a server asks in the middle of a call, instead of the pool's. Only what those answer is asked at all. */
  readonly handlers?: ServerRequestHandlers;
  /**
   * Told once of each thing that is not as its author meant it: a name that is taken, a schema that cannot be used, a part
   * of a result that cannot be shown. Default: the first one of each source is a process warning.
   */
  readonly onProblem?: (problem: Problem) => void;
}

/** What `createAgent` takes. There are no static tools: a static list is frozen into the agent's graph. */
export interface LangchainParts {
  readonly tools: [];
  readonly middleware: [AgentMiddleware, AgentMiddleware];
}

/**
 * A view as what `createAgent` takes: `createAgent({ model, ...langchain(view) })`.
 *
 * One middleware does all of it. Before each model call it takes one snapshot of the view: tools that came are offered,
 * tools that went are not, instructions follow the agent's own system prompt, and media in results are put where this
 * model reads them. Calls go through the view, with tracing, streaming, interrupts and the run's signal intact; what
 * fails is answered with an error that the model can read. One agent object may run many times at once: each run has a
 * turn of its own.
 *
 * Beside own tools and middleware write `tools: [...mine, ...lc.tools], middleware: [...mine, ...lc.middleware]`; a plain
 * spread would be overwritten.
 */
export function langchain(view: ExtensionView, options: LangchainOptions = {}): LangchainParts {
  const report = createProblemReport(options.onProblem);
  const adapter = {
    view,
    report,
    media: options.media ?? 'auto',
    mediaOf: makeMediaOf(options.maxMediaBytes),
    deferAbove: options.deferAbove,
    ownToolErrors: options.ownToolErrors ?? 'to-model',
    faceOf: makeFaces(report),
    offered: new Set<string>(),
    taken: new Set<string>(),
    exec: { ...makeExecSettings(report, options.maxResultChars), handlers: options.handlers },
  } as const;
  const name = middlewareName(view.scope, options.name);
  const turn = createMiddleware({
    name: `${name}-turn`,
    stateSchema: runState,
    contextSchema: runContext,
    // No messages: the update that goes out on streams does not repeat the history.
    beforeAgent: () => ({ _patchbayTurn: globalThis.crypto.randomUUID(), messages: [] }),
    afterAgent: (state, runtime) => endTurn({ state, runtime }, view),
  });
  const middleware = createMiddleware({
    name,
    stateSchema: runState,
    contextSchema: runContext,
    wrapModelCall: async (request, handler) => handler(await modelRequest(request, adapter)),
    afterModel: (state, runtime) => askAboutStep({ state, runtime }, adapter),
    wrapToolCall: (request, handler) => callTool(request, handler, adapter),
  });
  return { tools: [], middleware: [turn, middleware] };
}

/** The hooks of a middleware become nodes of the graph, and LangGraph refuses `:` and `|` in their names. */
function middlewareName({ session, agent }: Scope, name?: string): string {
  const parts = name === undefined ? [session, agent] : [name];
  return ['patchbay', ...parts.filter((part) => part !== undefined)]
    .join('-')
    .replaceAll(/[^A-Za-z0-9_-]/g, '_');
}
