import {
  PatchbayError,
  toPatchbayError,
  traced,
  withSignal,
  type ActingSkill,
  type ApprovalDecision,
  type ApprovalPolicy,
  type ArgumentValidator,
  type CallContext,
  type CallOptions,
  type Stop,
  type ToolResult,
  type TraceListener,
} from '@patchbay/protocols';

import { executionRule } from './acting.ts';
import { checkOutput } from './output-check.ts';
import { approvedTools, returnApproval, spendApproval } from './session-approvals.ts';
import type { OfferedTool } from './snapshot.ts';
import type { ToolPins } from './tool-pins.ts';
import type { NameFilter, Viewer } from './viewer.ts';
import { cutShort, untilAnyOf } from './waiting.ts';

/** A tool that is told to stop has so long to say what became of it. */
const CUT_MS = 1_000;

/** What every call of a registry goes by. */
export interface CallRules {
  readonly trace: TraceListener | undefined;
  readonly approval: ApprovalPolicy | undefined;
  readonly validator: ArgumentValidator | undefined;
  /** Tools that run what they are given, by the name that a model sees. */
  readonly executing: NameFilter | readonly NameFilter[] | undefined;
  readonly pins: ToolPins | undefined;
}

/** Who makes a call, and by which rules. */
export interface Caller {
  readonly viewer: Viewer;
  readonly rules: CallRules;
  /** See {@link actingSkills}. */
  readonly acting: () => readonly ActingSkill[];
}

/** What the policy says, and the rule that no policy lifts. A policy that throws has not allowed anything. */
export async function decide(
  offered: OfferedTool,
  args: unknown,
  { viewer, rules, acting: actingNow }: Caller,
): Promise<ApprovalDecision> {
  if (allowsAll(rules)) return 'allow';
  const { approval, executing, pins } = rules;
  const { id, definition } = offered.tool;
  try {
    const acting = actingNow();
    const ask = approval ?? (() => 'allow' as const);
    const said = await ask({
      tool: {
        id,
        name: definition.name,
        ...(definition.annotations === undefined ? {} : { annotations: definition.annotations }),
      },
      args: isObject(args) ? args : {},
      scope: viewer.scope,
      ...(viewer.identity === undefined ? {} : { identity: viewer.identity }),
      ...(acting.length === 0 ? {} : { acting }),
    });
    const changed = isRefusal(said) ? [] : (pins?.changes(offered, viewer.state) ?? []);
    if (changed.length > 0)
      return { ask: `its ${changed.join(' and ')} changed since it was seen first` };
    const allowed = said === 'allow' || (isQuestion(said) && isApproved(viewer, definition.name));
    return allowed ? executionRule(definition.name, acting, executing) : said;
  } catch (error) {
    return { deny: `the approval policy failed: ${toPatchbayError(error).message}` };
  }
}

/** Nobody has to be asked about anything. */
const allowsAll = ({ approval, executing, pins }: CallRules): boolean =>
  approval === undefined && executing === undefined && pins === undefined;

const isQuestion = (said: ApprovalDecision): boolean =>
  said === 'ask' || (typeof said === 'object' && 'ask' in said);

const isApproved = ({ state }: Viewer, name: string): boolean =>
  approvedTools(state).includes(name);

/** One call: arguments checked, approval asked, scope and identity bound, cut when its capability closes; result checked. */
export async function callOffered(
  offered: OfferedTool,
  args: unknown,
  caller: Caller,
  options: CallOptions,
): Promise<ToolResult> {
  const { viewer, rules } = caller;
  const { id, definition } = offered.tool;
  const make = () => callChecked(offered, args, caller, options);
  const result = await (rules.trace === undefined
    ? make()
    : traced(rules.trace, make, (outcome) => ({
        type: 'call',
        tool: id,
        name: definition.name,
        scope: viewer.scope,
        ...outcome,
      })));
  return checkOutput(definition, result, rules.validator ?? options.validator);
}

async function callChecked(
  offered: OfferedTool,
  args: unknown,
  caller: Caller,
  options: CallOptions,
): Promise<ToolResult> {
  const { viewer, rules } = caller;
  const { tool, registration } = offered;
  const { name } = tool.definition;
  const { signal } = options;
  if (signal?.aborted === true) throw aborted(name, signal);
  checkArguments(offered, args, rules.validator ?? options.validator);
  const spent = allowsAll(rules) ? undefined : await approve(offered, args, caller, options);
  const { stop, release } = untilAnyOf(signal, viewer.ended, registration.gone);
  viewer.activity.begin();
  try {
    if (registration.closed) throw unavailable(name);
    const result = await cutShort(tool.call(args, context(viewer, options, stop)), stop, CUT_MS);
    if (spent !== undefined && result.isError === true) returnApproval(viewer.state, spent);
    return result;
  } catch (error) {
    if (spent !== undefined && !stop.isOver && !isUnknown(error))
      returnApproval(viewer.state, spent);
    throw failure(offered, signal, error);
  } finally {
    viewer.activity.end();
    release();
  }
}

function checkArguments(
  { tool: { definition }, registration }: OfferedTool,
  args: unknown,
  validator: ArgumentValidator | undefined,
): void {
  const check = validator?.validate(definition.inputSchema, args ?? {});
  if (check === undefined || check.ok) return;
  const { violations } = check;
  throw new PatchbayError(
    'invalid-arguments',
    `Invalid arguments for ${definition.name}: ${violations.join('; ')}`,
    { source: registration.id, details: { tool: definition.name, violations } },
  );
}

/** What a call that was made ends with, when it did not end with a result. */
function failure(
  { tool, registration }: OfferedTool,
  signal: AbortSignal | undefined,
  error: unknown,
): PatchbayError {
  const { name } = tool.definition;
  if (PatchbayError.isInstance(error)) return error;
  if (signal?.aborted === true) return aborted(name, signal, error);
  const source = registration.id;
  return toPatchbayError(error, 'source-failed', { source, what: `${name} failed` });
}

export function unavailable(name: string): PatchbayError {
  return new PatchbayError(
    'tool-unavailable',
    `The tool "${name}" is not available (any more). Use one of the tools that are offered now.`,
    { details: { tool: name } },
  );
}

/** Whether nobody knows what became of it. */
const isUnknown = (error: unknown): boolean =>
  PatchbayError.isInstance(error) && UNKNOWN_OUTCOMES.has(error.code);

const UNKNOWN_OUTCOMES: ReadonlySet<string> = new Set(['aborted', 'timeout', 'outcome-unknown']);

/** Gives the answer that was taken for this call, if it is one that counts once. */
async function approve(
  offered: OfferedTool,
  args: unknown,
  caller: Caller,
  options: CallOptions,
): Promise<string | undefined> {
  const decision = await decide(offered, args, caller);
  if (decision === 'allow') return undefined;
  const { name } = offered.tool.definition;
  const details = { tool: name };
  const source = offered.registration.id;
  if (isRefusal(decision)) {
    const why = typeof decision === 'object' ? ` (${decision.deny})` : '';
    throw new PatchbayError('approval-denied', `The call of ${name} was refused by policy${why}.`, {
      source,
      details,
    });
  }
  if (options.approved === true) {
    const { approvalId } = options;
    const { state } = caller.viewer;
    if (approvalId !== undefined && !spendApproval(state, approvalId)) {
      throw new PatchbayError(
        'approval-denied',
        `The approval of this call of ${name} was used already: the call was made, or may have been, and is not made again. Call the tool anew if it has to be.`,
        { source, details },
      );
    }
    const { pins } = caller.rules;
    if (pins !== undefined && pins.changes(offered, state).length > 0) pins.approve(offered, state);
    return approvalId;
  }
  const asked = typeof decision === 'object' ? { question: decision.ask } : {};
  const question = typeof decision === 'object' ? ` (${decision.ask})` : '';
  throw new PatchbayError(
    'approval-required',
    `The call of ${name} needs an approval${question}, and nobody could be asked, so it did not run.`,
    { source, details: { ...details, ...asked } },
  );
}

const isRefusal = (decision: ApprovalDecision): decision is 'deny' | { readonly deny: string } =>
  decision === 'deny' || (typeof decision === 'object' && 'deny' in decision);

/** Without spreads: it is made for each call. */
function context(viewer: Viewer, options: CallOptions, stop: Stop): CallContext {
  const { timeoutMs, onProgress, handlers } = options;
  const made: { -readonly [K in keyof CallContext]: CallContext[K] } & { readonly stop: Stop } = {
    scope: viewer.scope,
    callId: options.callId ?? globalThis.crypto.randomUUID(),
    stop,
  };
  if (viewer.identity !== undefined) made.identity = viewer.identity;
  if (timeoutMs !== undefined) made.timeoutMs = timeoutMs;
  if (onProgress !== undefined) made.onProgress = onProgress;
  if (handlers !== undefined) made.handlers = handlers;
  return withSignal(made);
}

function aborted(name: string, signal: AbortSignal, cause?: unknown): PatchbayError {
  return new PatchbayError('aborted', `The call of ${name} was aborted by its caller.`, {
    cause: signal.reason ?? cause,
    details: { tool: name },
  });
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
