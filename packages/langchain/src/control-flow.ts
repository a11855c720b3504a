/**
 * LangGraph's control flow (an interrupt, a command for a parent graph) travels as an error and must reach the graph.
 * Looked for behind `cause` as well: a capability that calls `interrupt()` has its error wrapped on the way. Recognised by
 * LangGraph's own mark, so that no version of it has to be imported.
 */
export function bubbleUp(error: unknown): Error | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 10; at = at.cause, depth++) {
    if ('is_bubble_up' in at && at.is_bubble_up === true) return at;
  }
  return undefined;
}
