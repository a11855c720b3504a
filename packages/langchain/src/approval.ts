import {
  PatchbayError,
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

/**
 * A call through the turn. Where the policy wants a person asked, the run is interrupted before anything is sent, with
 * the same question and the same answers as `humanInTheLoopMiddleware`, so that one user interface serves both. Where
 * nobody can be asked (no checkpointer), the refusal stands.
 */
export async function callAsking(
  turn: Pick<TurnView, 'callTool'>,
  call: AskedCall,
  options: CallOptions,
  interrupt: Interrupt | undefined,
): Promise<ToolResult> {
  try {
    return await turn.callTool(call.name, call.args, options);
  } catch (error) {
    if (!needsApproval(error) || interrupt === undefined) throw error;
    const args = decided(call, ask(call, error, interrupt));
    return turn.callTool(call.name, args, { ...options, approved: true });
  }
}

function needsApproval(error: unknown): error is PatchbayError {
  return PatchbayError.isInstance(error) && error.code === 'approval-required';
}

function ask(call: AskedCall, required: PatchbayError, interrupt: Interrupt): unknown {
  const { name } = call;
  const args = isRecord(call.args) ? call.args : {};
  const { question: wanted } = required.details ?? {};
  // The policy's own words, where it has any.
  const description =
    typeof wanted === 'string' ? wanted : `The call of ${name} needs an approval.`;
  const question: HITLRequest = {
    actionRequests: [{ name, args, description }],
    reviewConfigs: [{ actionName: name, allowedDecisions: ['approve', 'edit', 'reject'] }],
  };
  try {
    return interrupt(question);
  } catch (error) {
    throw bubbleUp(error) ?? required;
  }
}

/** The arguments to call with. */
function decided({ name, args }: AskedCall, answer: unknown): unknown {
  const decisions =
    isRecord(answer) && Array.isArray(answer['decisions']) ? answer['decisions'] : [];
  const decision: unknown = decisions[0];
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
    `The call of ${name} did not run: the answer to its approval was not understood. Resume with { decisions: [{ type: 'approve' | 'edit' | 'reject' }] }.`,
  );
}

function refused(tool: string, message: string): PatchbayError {
  return new PatchbayError('approval-denied', message, { details: { tool } });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
