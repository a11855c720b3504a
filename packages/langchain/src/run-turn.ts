import { HumanMessage, type BaseMessage } from '@langchain/core/messages';
import { PatchbayError, type ExtensionView, type TurnView } from '@patchbay/protocols';
import { z } from 'zod';

/** What a person said about one call of the last step. */
export interface Said {
  /** The arguments that they were shown, as JSON. */
  readonly args: string;
  /** As it was said; whoever makes the call looks at it. */
  readonly decision: unknown;
}

/**
 * The turn's id lies in the state of the run: it is made once when a run begins, two parallel runs have two, and it is
 * checkpointed, so that a run resumed elsewhere goes on with the same turn. So does what people said about the calls of the
 * last step, by the ids of the calls. Plain data; nothing else of ours is kept in a channel. The underscore keeps it out of
 * the agent's input and output.
 */
export const runState: z.ZodObject<{
  _patchbayTurn: z.ZodOptional<z.ZodString>;
  _patchbaySaid: z.ZodOptional<z.ZodRecord<z.ZodString, z.ZodCustom<Said, Said>>>;
}> = z.object({
  _patchbayTurn: z.string().optional(),
  _patchbaySaid: z.record(z.string(), z.custom<Said>()).optional(),
});

/**
 * `context: { patchbay: view }` gives a run a view of its own. Optional, because a context is not checkpointed: a resumed
 * run may come without.
 */
export const runContext: z.ZodObject<{
  patchbay: z.ZodOptional<z.ZodCustom<ExtensionView, ExtensionView>>;
}> = z.object({
  patchbay: z
    .custom<ExtensionView>(
      isView,
      '`context.patchbay` must be a view, as `registry.view()` gives it.',
    )
    .optional(),
});

function isView(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    'beginTurn' in value &&
    typeof value.beginTurn === 'function'
  );
}

/** What the two hooks of a run have in common. */
export interface RunHook {
  readonly state: {
    readonly messages: readonly BaseMessage[];
    readonly _patchbayTurn?: string | undefined;
    readonly _patchbaySaid?: Readonly<Record<string, Said>> | undefined;
  };
  readonly runtime: {
    readonly context?: { readonly patchbay?: ExtensionView | undefined } | undefined;
    readonly configurable?: { readonly thread_id?: string } | undefined;
    readonly signal?: AbortSignal | undefined;
  };
}

/** The view of a run: its own, else the one that the agent was made with. */
export function viewOfRun(runtime: RunHook['runtime'], view: ExtensionView): ExtensionView {
  return runtime.context?.patchbay ?? view;
}

/**
 * The turn of a run, begun at its first use: any hook may be the first one of a process. A thread that was interrupted
 * before it had this middleware knows no id; its own name stands in.
 */
export function turnOfRun({ state, runtime }: RunHook, view: ExtensionView): TurnView {
  const thread = runtime.configurable?.thread_id;
  const turnId = state._patchbayTurn ?? (thread === undefined ? undefined : `thread ${thread}`);
  const said = state.messages.findLast((message) => HumanMessage.isInstance(message));
  return viewOfRun(runtime, view).beginTurn({
    ...(turnId === undefined ? {} : { turnId }),
    ...(said === undefined ? {} : { userText: said.text }),
  });
}

/** Ends the turn of a run that came to its end. One that was aborted or waits for a person keeps it, up to its idle limit. */
export async function endTurn(hook: RunHook, view: ExtensionView): Promise<void> {
  try {
    await turnOfRun(hook, view).close();
  } catch (error) {
    // A view that was closed meanwhile has ended its turns.
    if (!PatchbayError.isInstance(error) || error.code !== 'closed') throw error;
  }
}
