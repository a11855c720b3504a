import type { Client } from '@modelcontextprotocol/client';
import { PatchbayError } from '@patchbay/protocols';

import type { Link, LinkEvents } from './link.ts';
import { requestError } from './request-error.ts';
import { hearNotifications, send, serverInfo } from './sdk-client.ts';

/** What is used of a client that the program made: of the official SDK, version 1 or 2. */
const NEEDED = ['request', 'getServerCapabilities', 'getServerVersion'] as const;

/**
 * A link over a client that the program made, connected and closes itself; also one to a server in the same process.
 * @throws PatchbayError `invalid-config`, `connect-failed`
 */
export function injectedLink(given: object, events: LinkEvents): Link {
  const missing = NEEDED.filter(
    (name) => typeof (given as Readonly<Record<string, unknown>>)[name] !== 'function',
  );
  if (missing.length > 0) {
    throw new PatchbayError(
      'invalid-config',
      `The injected client has no ${missing.join('(), ')}(). Give a connected client of @modelcontextprotocol/client or @modelcontextprotocol/sdk.`,
    );
  }
  const client = given as Client;
  if ('transport' in client && client.transport === undefined) {
    throw new PatchbayError(
      'connect-failed',
      'The injected client is not connected. Whoever made it must connect it, and leave it open.',
    );
  }
  const stopHearing = hearNotifications(client, events.onNotification);
  let lost: PatchbayError | undefined;
  let answered = 0;
  const before = client.onclose;
  const onclose = () => {
    before?.();
    lost = new PatchbayError('connection-lost', 'The injected client was closed by its owner.');
    events.onLost(lost);
  };
  client.onclose = onclose;
  return {
    get info() {
      return serverInfo(client);
    },
    get lost() {
      return lost;
    },
    get answered() {
      return answered;
    },
    request: async (method, params, options) => {
      try {
        const answer = await send(client, method, params, options);
        answered++;
        return answer;
      } catch (error) {
        throw requestError(error, { what: options.what, lost, closing: false, hasSession: false });
      }
    },
    drain: async () => undefined,
    close: async () => {
      stopHearing();
      if (client.onclose !== onclose) return;
      if (before === undefined) delete client.onclose;
      else client.onclose = before;
    },
  };
}
