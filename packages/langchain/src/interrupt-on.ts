import type { ExtensionView, ToolDefinition } from '@patchbay/protocols';

/**
 * The `interruptOn` of `humanInTheLoopMiddleware` for the tools of a view, by name. Its own predicate never sees a tool,
 * hence no annotations. Names are stable, so it can be made once; a tool that joins later is not in it.
 *
 * `ask` says for which tools a person is asked. Default: all but those whose author calls them read-only or not
 * destructive. (MCP "ToolAnnotations": a tool is destructive unless it says otherwise)
 */
export async function interruptOn(
  view: ExtensionView,
  ask: (definition: ToolDefinition) => boolean = mayDestroy,
): Promise<Record<string, boolean>> {
  const { tools } = await view.compile();
  const asked = tools.map(({ definition }) => definition).filter(ask);
  return Object.fromEntries(asked.map(({ name }) => [name, true]));
}

function mayDestroy({ annotations }: ToolDefinition): boolean {
  return annotations?.readOnlyHint !== true && annotations?.destructiveHint !== false;
}
