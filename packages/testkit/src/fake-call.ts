import {
  PatchbayError,
  toPatchbayError,
  type CallOptions,
  type Identity,
  type Scope,
  type Tool,
  type ToolResult,
} from '@patchbay/protocols';

/** What a call is made against. */
export interface Callable {
  readonly tools: readonly Tool[];
  readonly hidden: (name: string) => boolean;
  readonly scope: Scope;
  readonly identity: Identity | undefined;
}

/** One call, as a view of a registry makes it. */
export async function callTool(
  { tools, hidden, scope, identity }: Callable,
  name: string,
  args: unknown,
  { validator, callId, signal, timeoutMs, onProgress, handlers }: CallOptions,
): Promise<ToolResult> {
  const tool = tools.find(({ definition }) => definition.name === name);
  const details = { tool: name };
  if (tool === undefined) {
    const message = `The tool "${name}" is not available (any more).`;
    throw new PatchbayError('tool-unavailable', message, { details });
  }
  if (hidden(name)) {
    const message = `The tool "${name}" may not be used at the moment.`;
    throw new PatchbayError('tool-hidden', message, { details });
  }
  if (isAborted(signal)) throw aborted(name, signal);
  const check = validator?.validate(tool.definition.inputSchema, args ?? {});
  if (check?.ok === false) {
    const { violations } = check;
    const message = `Invalid arguments for ${name}: ${violations.join('; ')}`;
    throw new PatchbayError('invalid-arguments', message, {
      source: tool.id.capability,
      details: { tool: name, violations },
    });
  }
  try {
    return await tool.call(args, {
      scope,
      ...(identity === undefined ? {} : { identity }),
      callId: callId ?? globalThis.crypto.randomUUID(),
      ...(signal === undefined ? {} : { signal }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(onProgress === undefined ? {} : { onProgress }),
      ...(handlers === undefined ? {} : { handlers }),
    });
  } catch (error) {
    if (PatchbayError.isInstance(error)) throw error;
    if (isAborted(signal)) throw aborted(name, signal);
    const source = tool.id.capability;
    throw toPatchbayError(error, 'source-failed', { source, what: `${name} failed` });
  }
}

const isAborted = (signal: AbortSignal | undefined): signal is AbortSignal =>
  signal?.aborted === true;

const aborted = (name: string, signal: AbortSignal): PatchbayError =>
  new PatchbayError('aborted', `The call of ${name} was aborted by its caller.`, {
    cause: signal.reason,
    details: { tool: name },
  });
