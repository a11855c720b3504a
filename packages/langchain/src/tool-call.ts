import type { ToolMessage } from '@langchain/core/messages';
import type { ExtensionView, Tool, TurnView } from '@patchbay/protocols';
import type { ToolCallHandler, ToolCallRequest } from 'langchain';

import { bubbleUp } from './control-flow.ts';
import { execTool, isExecTool, type ExecSettings } from './exec-tool.ts';
import { ownToolError } from './own-tool-error.ts';
import { turnOfRun, viewOfRun, type RunHook } from './run-turn.ts';
import { saidAbout } from './step-approval.ts';
import { errorMessage } from './tool-message.ts';

/** What the hook for tool calls needs of its adapter. */
export interface ToolCallSettings {
  readonly view: ExtensionView;
  readonly ownToolErrors: 'to-model' | 'throw';
  /** Every name that was ever offered: one of them that is gone is still ours to answer for. */
  readonly offered: ReadonlySet<string>;
  readonly exec: ExecSettings;
}

/** The parts of LangChain's request that are read or replaced. */
type Request = Pick<ToolCallRequest, 'toolCall' | 'tool' | 'runtime'> & RunHook;
type Answer = ReturnType<ToolCallHandler>;

/** Answers one tool call: ours through the view, the agent's own and everybody else's through the handler. */
export async function callTool<R extends Request>(
  request: R,
  handler: (request: R) => Answer,
  { view, ownToolErrors, offered, exec }: ToolCallSettings,
): Promise<Awaited<Answer>> {
  const { toolCall, tool, runtime } = request;
  if (tool !== undefined) {
    const ours = isExecTool(tool);
    return ours || ownToolErrors === 'throw' ? handler(request) : callOwnTool(request, handler);
  }
  let found: Found | undefined;
  try {
    found = await find(request, view, offered);
  } catch (error) {
    if (runtime.signal?.aborted === true) throw error;
    return errorMessage(toolCall, error);
  }
  // Perhaps another middleware's; if it is nobody's, LangChain says so to the model.
  if (found === undefined) return handler(request);
  const { interrupt, writer } = runtime;
  const { turn, tool: known } = found;
  if (known !== undefined) exec.validator.learn(known);
  const call = { id: toolCall.id, name: toolCall.name, source: known?.id.capability };
  const description = known?.definition.description ?? '';
  const origin = { turn, interrupt, writer, said: saidAbout(request, toolCall) };
  return handler({ ...request, tool: execTool(call, description, origin, exec) });
}

interface Found {
  readonly turn: TurnView;
  /** Absent where the name is known, but nothing may be called by it now. */
  readonly tool?: Tool;
}

/**
 * A name that is offered, was offered, or is only hidden in this turn. For the latter two the view's own call says to the
 * model what became of it. A resumed run may begin here: then nothing was prepared yet, and nothing hidden.
 */
async function find(
  request: Request,
  view: ExtensionView,
  offered: ReadonlySet<string>,
): Promise<Found | undefined> {
  const { name } = request.toolCall;
  const { signal } = request.runtime;
  const turn = turnOfRun(request, view);
  const step = turn.current() ?? (await turn.prepare(signal === undefined ? {} : { signal }));
  const isNamed = ({ definition }: { readonly definition: { readonly name: string } }) =>
    definition.name === name;
  const tool = step.tools.find(isNamed);
  if (tool !== undefined) return { turn, tool };
  const known = viewOfRun(request.runtime, view).current()?.tools.some(isNamed) ?? false;
  return known || offered.has(name) ? { turn } : undefined;
}

async function callOwnTool<R extends Request>(
  request: R,
  handler: (request: R) => Answer,
): Promise<Awaited<Answer> | ToolMessage> {
  try {
    return await handler(request);
  } catch (error) {
    if (bubbleUp(error) !== undefined || request.runtime.signal?.aborted === true) throw error;
    const message = ownToolError(error, request.toolCall);
    if (message === undefined) throw error;
    return message;
  }
}
