import type { Json, SessionState } from '@patchbay/protocols';

/** Tools that a user approved for the rest of a session. */
const KEY = 'approvals.tools';
/** Answers of people that made a call: the last ones. */
const USED = 'approvals.used';
const MAX_USED = 500;

/**
 * Approves a tool for the rest of a session: where the policy says `ask`, nobody is asked again. A denial of the policy stays
 * one. `state` is the session's (`registry.state({ session })`), so the approval survives a restart with it; `name` is what a
 * model sees, `github__create_issue`, and means exactly that tool.
 */
export function approveTool(state: SessionState, name: string): void {
  store(state, [...approvedTools(state).filter((known) => known !== name), name]);
}

/** From now on somebody is asked again. */
export function revokeTool(state: SessionState, name: string): void {
  store(
    state,
    approvedTools(state).filter((known) => known !== name),
  );
}

/** What was approved, in the order in which it was. */
export function approvedTools(state: Pick<SessionState, 'get'>): readonly string[] {
  return textsOf(state.get(KEY));
}

/** Takes an answer for a call; false where it has made one already. */
export function spendApproval(state: SessionState, id: string): boolean {
  const used = textsOf(state.get(USED));
  if (used.includes(id)) return false;
  state.set(USED, [...used, id].slice(-MAX_USED));
  return true;
}

/** The call came to nothing: the answer still counts. */
export function returnApproval(state: SessionState, id: string): void {
  const left = textsOf(state.get(USED)).filter((used) => used !== id);
  state.set(USED, left.length === 0 ? undefined : left);
}

/** What was restored may be anything. */
function textsOf(stored: Json | undefined): readonly string[] {
  return Array.isArray(stored)
    ? (stored as readonly Json[]).filter((name): name is string => typeof name === 'string')
    : [];
}

function store(state: SessionState, names: readonly string[]): void {
  state.set(KEY, names.length === 0 ? undefined : [...names]);
}
