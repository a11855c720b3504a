import { AIMessage, ToolMessage } from '@langchain/core/messages';
import { PatchbayError, type ExtensionView } from '@patchbay/protocols';

import { askPerson, questionOf, type Interrupt, type Question } from './approval.ts';
import type { ExecSettings } from './exec-tool.ts';
import { turnOfRun, type RunHook, type Said } from './run-turn.ts';

/** What the hook behind model calls needs of its adapter. */
export interface StepApprovalSettings {
  readonly view: ExtensionView;
  /** Names of the view that are the agent's own. */
  readonly taken: ReadonlySet<string>;
  readonly exec: ExecSettings;
}

type Calls = NonNullable<AIMessage['tool_calls']>;
type Hook = RunHook & { readonly runtime: { readonly interrupt?: Interrupt | undefined } };

/**
 * Asks about all calls of a step at once, before any of them is made: LangGraph gives one answer to everybody who waits, so
 * that with a question each, a "yes" to one call would be a "yes" to all. What was said lies in the state, for these
 * arguments; each call still asks the policy, and a person once more where something has changed since.
 */
export async function askAboutStep(
  { state, runtime }: Hook,
  settings: StepApprovalSettings,
): Promise<{ readonly _patchbaySaid: Record<string, Said>; messages: [] } | undefined> {
  const calls = openCalls(state.messages);
  const asked = await questions(calls, { state, runtime }, settings);
  if (asked.length === 0) return undefined;
  const decisions = askPerson(asked, runtime.interrupt);
  if (decisions === undefined) return undefined;
  const said = asked.map(({ id, args }, at) => [
    id,
    { args: JSON.stringify(args), decision: decisions[at] },
  ]);
  // Another view of the same agent may have asked about others.
  const before = Object.entries(state._patchbaySaid ?? {}).filter(([id]) =>
    calls.some((call) => call.id === id),
  );
  // No messages: the update that goes out on streams does not repeat the history.
  return { _patchbaySaid: Object.fromEntries([...before, ...said]), messages: [] };
}

/** What the model asked for last and nobody has answered: another middleware may have answered some. */
function openCalls(messages: RunHook['state']['messages']): Calls {
  const at = messages.findLastIndex((message) => AIMessage.isInstance(message));
  const last = messages[at];
  if (!AIMessage.isInstance(last)) return [];
  const answered = messages.slice(at).filter((message) => ToolMessage.isInstance(message));
  return (last.tool_calls ?? []).filter(
    ({ id }) => !answered.some(({ tool_call_id }) => tool_call_id === id),
  );
}

/** What was said about a call as it is made now. */
export function saidAbout(
  { state }: RunHook,
  { id, args }: { readonly id?: string | undefined; readonly args: unknown },
): Said | undefined {
  const said = id === undefined ? undefined : state._patchbaySaid?.[id];
  return said?.args === JSON.stringify(args) ? said : undefined;
}

/** The calls of ours that a person has to be asked about, in the model's order. What would fail anyway is no question. */
async function questions(
  calls: Calls,
  hook: Hook,
  { view, taken, exec }: StepApprovalSettings,
): Promise<readonly (Question & { readonly id: string })[]> {
  if (calls.length === 0) return [];
  try {
    const { signal } = hook.runtime;
    const turn = turnOfRun(hook, view);
    const step = turn.current() ?? (await turn.prepare(signal === undefined ? {} : { signal }));
    const found = await Promise.all(
      calls.map(async ({ id, name, args }) => {
        const tool = step.tools.find(({ definition }) => definition.name === name);
        if (id === undefined || tool === undefined || taken.has(name)) return [];
        exec.validator.learn(tool);
        if (!exec.validator.validate(tool.definition.inputSchema, args).ok) return [];
        const question = questionOf(await turn.approval(name, args));
        return question === undefined ? [] : [{ id, name, args, ...question }];
      }),
    );
    return found.flat();
  } catch (error) {
    // A view that was closed meanwhile: each call says so.
    if (PatchbayError.isInstance(error)) return [];
    throw error;
  }
}
