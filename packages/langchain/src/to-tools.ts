import { createProblemReport, type ProblemReport } from '@patchbay/adapter-kit';
import { DynamicStructuredTool, type StructuredTool } from '@langchain/core/tools';
import type { ExtensionView, Problem, Tool, TurnView } from '@patchbay/protocols';

import type { Interrupt } from './approval.ts';
import { makeExecSettings } from './exec-settings.ts';
import { execTool, type ExecSettings } from './exec-tool.ts';
import { PORTABLE, shownSchema } from './face-tool.ts';

export interface ToToolsOptions {
  /** See `LangchainOptions.maxResultChars`. */
  readonly maxResultChars?: number;
  /** See `LangchainOptions.onProblem`. */
  readonly onProblem?: (problem: Problem) => void;
  /** Gives up the wait for the view. */
  readonly signal?: AbortSignal;
}

/**
 * The tools that a view has now, as LangChain tools for a hand-written graph with LangGraph's `ToolNode`. The list is a
 * snapshot; the calls are not: each goes through the view, so a reconnect strands nothing and a tool that went away says
 * so. Handed a tool call they answer with a `ToolMessage`, handed plain arguments with its text. For `createAgent` use
 * `langchain`, which is live.
 */
export async function toTools(
  view: ExtensionView,
  options: ToToolsOptions = {},
): Promise<StructuredTool[]> {
  const { signal, maxResultChars, onProblem } = options;
  const report = createProblemReport(onProblem);
  const settings = makeExecSettings(report, maxResultChars);
  const { tools } = await view.compile(signal === undefined ? {} : { signal });
  return tools.map((tool) => new ViewTool(view, tool, settings, report));
}

/** What LangGraph hands to a tool beside the call. */
interface ToolConfig {
  readonly writer?: (chunk: unknown) => void;
  readonly interrupt?: Interrupt;
}

/** Shows a schema that every provider takes, and runs with an open one: see {@link execTool}. */
class ViewTool extends DynamicStructuredTool {
  override invoke: StructuredTool['invoke'];

  constructor(view: ExtensionView, tool: Tool, settings: ExecSettings, report: ProblemReport) {
    const { name, description = '' } = tool.definition;
    super({ name, description, schema: shownSchema(tool, PORTABLE, report), func: neverCalled });
    const source = tool.id.capability;
    settings.validator.learn(tool);
    const turn: Pick<TurnView, 'callTool'> = {
      callTool: async (called, args, options) => {
        await using own = view.beginTurn();
        return own.callTool(called, args, options);
      },
    };
    this.invoke = async (input, config) => {
      const { writer, interrupt } = (config ?? {}) as ToolConfig;
      const call = { name, id: isToolCall(input) ? input.id : undefined, source };
      const origin = { turn, writer, interrupt };
      const exec = execTool(call, description, origin, settings);
      const message = await exec.invoke(input, config);
      return isToolCall(input) ? message : message.content;
    };
  }
}

const neverCalled = (): Promise<never> =>
  Promise.reject(new Error('A tool of patchbay is run by `invoke`.'));

function isToolCall(input: unknown): input is { readonly id: string; readonly type: 'tool_call' } {
  return (
    typeof input === 'object' &&
    input !== null &&
    'type' in input &&
    input.type === 'tool_call' &&
    'id' in input
  );
}
