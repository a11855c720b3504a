import type { Json, SessionState } from '@patchbay/protocols';

/** Tools that a user approved for the rest of a session. */
const KEY = 'approvals.tools';

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
  const stored = state.get(KEY);
  // What was restored may be anything.
  return Array.isArray(stored)
    ? (stored as readonly Json[]).filter((name): name is string => typeof name === 'string')
    : [];
}

function store(state: SessionState, names: readonly string[]): void {
  state.set(KEY, names.length === 0 ? undefined : [...names]);
}
