import type { Client } from '@modelcontextprotocol/client';
import { PatchbayError, stopBy } from '@patchbay/protocols';

import type { Link, LinkEvents } from './link.ts';
import { requestError } from './request-error.ts';
import { ResourceWatch } from './resource-watch.ts';
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
  const listening = new AbortController();
  const ask = async (question: () => Promise<unknown>, what: () => string): Promise<unknown> => {
    try {
      const answer = await question();
      answered++;
      return answer;
    } catch (error) {
      throw requestError(error, { what: what(), lost, closing: false, hasSession: false });
    }
  };
  const nothing = {
    stop: stopBy(listening.signal),
    what: () => 'updates',
    onProgress: () => undefined,
  };
  const watch = new ResourceWatch(client, {
    signal: listening.signal,
    onGap: (uri) => events.onNotification('notifications/resources/updated', { uri }),
    onDeaf: events.onDeaf,
    request: (method, params) => send(client, method, params, nothing),
  });
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
    request: (method, params, options) =>
      ask(() => send(client, method, params, options), options.what),
    watch: async (wanted, { what }) => void (await ask(() => watch.set(wanted), what)),
    drain: async () => undefined,
    close: async () => {
      listening.abort();
      stopHearing();
      if (client.onclose !== onclose) return;
      if (before === undefined) delete client.onclose;
      else client.onclose = before;
    },
  };
}
