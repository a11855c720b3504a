import { ToolMessage } from '@langchain/core/messages';
import { MiddlewareError, ToolInvocationError, type ToolCallRequest } from 'langchain';

type ToolCall = ToolCallRequest['toolCall'];

/**
 * A failure of one of the agent's own tools, as `createAgent` would have reported it. As soon as any middleware wraps tool
 * calls, LangChain ends the run instead; an agent must not break because patchbay joined it.
 *
 * What another middleware threw on purpose is `undefined`: it ended the run before, and still does.
 */
export function ownToolError(error: unknown, call: ToolCall): ToolMessage | undefined {
  if (error instanceof MiddlewareError) return undefined;
  return new ToolMessage({
    content:
      error instanceof ToolInvocationError
        ? error.message
        : `${String(error)}\n Please fix your mistakes.`,
    status: 'error',
    name: call.name,
    tool_call_id: call.id ?? '',
  });
}
