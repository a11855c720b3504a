import type {
  Client,
  ClientCapabilities,
  CreateMessageResult,
  ElicitResult,
} from '@modelcontextprotocol/client';
import { PatchbayError, type ServerRequestHandlers } from '@patchbay/protocols';

/** What is announced to servers: only what has a handler. A capability without one would offer tools that then fail. */
export function announced(handlers: ServerRequestHandlers): ClientCapabilities {
  return {
    ...(handlers.elicitation === undefined
      ? {}
      : { elicitation: { form: { applyDefaults: true }, url: {} } }),
    ...(handlers.sampling === undefined ? {} : { sampling: {} }),
    ...(handlers.roots === undefined ? {} : { roots: {} }),
  };
}

/**
 * Lets handlers answer what a server asks, in both eras of the protocol. `current` says whose handlers, at the time of
 * the question.
 */
export function answerRequests(
  client: Client,
  handlers: ServerRequestHandlers,
  current: () => ServerRequestHandlers,
): void {
  if (handlers.elicitation !== undefined) {
    client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq }) => {
      const answer = await current().elicitation?.(params, mcpReq.signal);
      return answered(answer) as ElicitResult;
    });
  }
  if (handlers.sampling !== undefined) {
    client.setRequestHandler('sampling/createMessage', async ({ params }, { mcpReq }) => {
      const answer = await current().sampling?.(params, mcpReq.signal);
      return answered(answer) as CreateMessageResult;
    });
  }
  if (handlers.roots !== undefined) {
    client.setRequestHandler('roots/list', async (_request, { mcpReq }) => ({
      roots: [...((await current().roots?.(mcpReq.signal)) ?? [])],
    }));
  }
}

function answered(answer: unknown): unknown {
  if (answer !== undefined) return answer;
  throw new PatchbayError('not-supported', 'Nobody here answers this request.');
}
