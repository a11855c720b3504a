import {
  PatchbayError,
  type ApprovalDecision,
  type CallOptions,
  type ToolResult,
  type TurnView,
} from '@patchbay/protocols';
import type { HITLRequest } from 'langchain';

import { bubbleUp } from './control-flow.ts';

/** LangGraph's `interrupt`, as the runtime of a hook hands it over. */
export type Interrupt = (question: unknown) => unknown;

/** A call to be made, as the model asked for it. */
export interface AskedCall {
  readonly name: string;
  readonly args: unknown;
}

/** A call that a person is asked about. */
export interface Question extends AskedCall {
  /** The policy's own words, where it has any. */
  readonly words?: string | undefined;
}

/**
 * A call through the turn. Where the policy wants a person asked, `said` is what they said when they were asked about the
 * step; else the run is interrupted before anything is sent. Where nobody can be asked (no checkpointer), the refusal
 * stands.
 */
export async function callAsking(
  turn: Pick<TurnView, 'callTool'>,
  call: AskedCall,
  options: CallOptions,
  asking: {
    readonly said?: { readonly decision: unknown } | undefined;
    interrupt?: Interrupt | undefined;
  },
): Promise<ToolResult> {
  const { said, interrupt } = asking;
  try {
    return await turn.callTool(call.name, call.args, options);
  } catch (error) {
    if (!needsApproval(error) || (said === undefined && interrupt === undefined)) throw error;
    const { question } = error.details ?? {};
    const words = typeof question === 'string' ? question : undefined;
    const decision =
      said === undefined ? askPerson([{ ...call, words }], interrupt)?.[0] : said.decision;
    if (decision === undefined) throw error;
    return turn.callTool(call.name, decided(call, decision), { ...options, approved: true });
  }
}

function needsApproval(error: unknown): error is PatchbayError {
  return PatchbayError.isInstance(error) && error.code === 'approval-required';
}

/**
 * Interrupts the run, with the same question and the same answers as `humanInTheLoopMiddleware`, so that one user interface
 * serves both: what was decided on each call, `null` where that cannot be told. `undefined`: nobody can be asked.
 */
export function askPerson(
  calls: readonly Question[],
  interrupt: Interrupt | undefined,
): readonly unknown[] | undefined {
  if (interrupt === undefined) return undefined;
  const question: HITLRequest = {
    actionRequests: calls.map(({ name, args, words }) => ({
      name,
      args: isRecord(args) ? args : {},
      description: words ?? `The call of ${name} needs an approval.`,
    })),
    reviewConfigs: calls.map(({ name }) => ({
      actionName: name,
      allowedDecisions: ['approve', 'edit', 'reject'],
    })),
  };
  let answer: unknown;
  try {
    answer = interrupt(question);
  } catch (error) {
    const control = bubbleUp(error);
    if (control !== undefined) throw control;
    return undefined;
  }
  const decisions = isRecord(answer) ? answer['decisions'] : undefined;
  // One decision for two calls is for neither of them.
  const fits = Array.isArray(decisions) && decisions.length === calls.length;
  return calls.map((_, at): unknown => (fits ? decisions[at] : null));
}

/** The question that a policy's answer is, if it is one. */
export function questionOf(said: ApprovalDecision): { readonly words?: string } | undefined {
  if (said === 'ask') return {};
  return typeof said === 'object' && 'ask' in said ? { words: said.ask } : undefined;
}

/** The arguments to call with. */
function decided({ name, args }: AskedCall, decision: unknown): unknown {
  if (isRecord(decision)) {
    if (decision['type'] === 'approve') return args;
    const edited = decision['editedAction'];
    if (decision['type'] === 'edit' && isRecord(edited) && edited['name'] === name) {
      return edited['args'];
    }
    if (decision['type'] === 'reject') {
      const said = typeof decision['message'] === 'string' ? `: ${decision['message']}` : '.';
      throw refused(name, `The call of ${name} was rejected by a person${said}`);
    }
  }
  throw refused(
    name,
    `The call of ${name} did not run: the answer to its approval was not understood. Resume with { decisions: [{ type: 'approve' | 'edit' | 'reject' }] }, one for each of the actionRequests.`,
  );
}

function refused(tool: string, message: string): PatchbayError {
  return new PatchbayError('approval-denied', message, { details: { tool } });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
