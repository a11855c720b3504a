import { lookup } from 'node:dns';
import { isIP } from 'node:net';

import { PatchbayError } from '@patchbay/protocols';
import { Agent, type Dispatcher, fetch as undiciFetch } from 'undici';

import type { HttpRequests } from './http-carrier.ts';
import type { AllowAddress } from './public-address.ts';

/**
 * A `fetch` that connects only to addresses that are allowed. A name is looked up once for each socket, and the socket goes
 * to the address that was looked at: a name that means something else a moment later changes nothing.
 */
export function checkedFetch(allow: AllowAddress): Pick<HttpRequests, 'fetch' | 'close'> & {
  readonly dispatcher: Dispatcher;
} {
  const agent = new Agent({
    // How long something may take is decided by whoever asks.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      lookup: (host, options, done) => {
        lookup(host, { ...options, all: true }, (error, found) => {
          if (error !== null) return done(error, []);
          const refused = found.find(({ address }) => !allow(address, host));
          if (refused !== undefined) return done(notAllowed(host, refused.address), []);
          return options.all === true
            ? done(null, found)
            : done(null, found[0]!.address, found[0]!.family);
        });
      },
    },
  });
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    const { hostname } = new URL(input instanceof Request ? input.url : input);
    const host = hostname.replaceAll(/^\[|\]$/g, '');
    // Nobody looks up what is an address.
    if (isIP(host) !== 0 && !allow(host, host)) throw notAllowed(host, host);
    const options = { ...init, dispatcher: agent } as Parameters<typeof undiciFetch>[1];
    return (await undiciFetch(input as string | URL, options)) as unknown as Response;
  };
  return { fetch, dispatcher: agent, close: () => agent.destroy() };
}

function notAllowed(host: string, address: string): PatchbayError {
  const what = host === address ? host : `${host} is at ${address}, which`;
  return new PatchbayError(
    'connect-failed',
    `${what} is no address that \`allowAddress\` allows.`,
    {
      details: { address, neverRan: true },
    },
  );
}
