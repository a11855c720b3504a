import type { Client, ClientCapabilities } from '@modelcontextprotocol/client';
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
      const answer = await need(current().elicitation, 'elicitation')(params, mcpReq.signal);
      return answer as never;
    });
  }
  if (handlers.sampling !== undefined) {
    client.setRequestHandler('sampling/createMessage', async ({ params }, { mcpReq }) => {
      const answer = await need(current().sampling, 'sampling')(params, mcpReq.signal);
      return answer as never;
    });
  }
  if (handlers.roots !== undefined) {
    client.setRequestHandler('roots/list', async (_request, { mcpReq }) => ({
      roots: [...(await need(current().roots, 'roots')(mcpReq.signal))],
    }));
  }
}

function need<T>(handler: T | undefined, what: string): T {
  if (handler !== undefined) return handler;
  throw new PatchbayError('not-supported', `Nobody here answers ${what} requests.`);
}
