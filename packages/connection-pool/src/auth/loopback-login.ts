import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';

import { PatchbayError } from '@patchbay/protocols';

import { MAX_TIMER_MS } from '../pause.ts';
import type { Login, LoginHandler, LoginRequest } from './login.ts';

export interface LoopbackOptions {
  /** Shows a page to the user: starts a browser, prints a link. Never hand the address to a shell. */
  readonly open: (address: URL, request: LoginRequest) => Promise<void> | void;
  /** How long the user has for it, in milliseconds. Default 300,000. */
  readonly timeoutMs?: number;
  /** What the browser shows at the end, as plain text. */
  readonly goodbye?: string;
}

const PATH = '/callback';

/**
 * A login for programs on the user's own machine: it listens on 127.0.0.1 for the browser to come back, on a free port unless
 * one is configured, until it came or time is up. (RFC 8252 section 7.3)
 */
export function loopbackLogin(options: LoopbackOptions): LoginHandler {
  const { goodbye = 'You can close this page and go back.' } = options;
  return {
    begin: async (request): Promise<Login> => {
      const { signal, callbackPort = 0 } = request;
      let cameBack: ((address: URL) => void) | undefined;
      const server = createServer((asked, response) => {
        const address = new URL(asked.url ?? '/', redirectUrl);
        const isIt = asked.method === 'GET' && address.pathname === PATH;
        answer(response, isIt ? 200 : 404, isIt ? goodbye : 'There is nothing here.');
        if (isIt) cameBack?.(address);
      });
      try {
        await once(server.listen(callbackPort, '127.0.0.1'), 'listening', { signal });
      } catch (cause) {
        server.close();
        const what = `A login cannot be waited for on port ${callbackPort} of this machine. Is it in use?`;
        throw new PatchbayError('authorization-failed', what, { cause });
      }
      const { port } = server.address() as { readonly port: number };
      const redirectUrl = `http://127.0.0.1:${port}${PATH}`;
      return {
        redirectUrl,
        visit: (address) => comeBack(address, request, options, (heard) => (cameBack = heard)),
        close: async () => {
          server.closeAllConnections();
          await new Promise((resolve) => server.close(resolve));
        },
      };
    },
  };
}

async function comeBack(
  address: URL,
  request: LoginRequest,
  { open, timeoutMs = 300_000 }: LoopbackOptions,
  hear: (cameBack: (address: URL) => void) => void,
): Promise<URL> {
  const { signal } = request;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<URL>((resolve, reject) => {
      hear(resolve);
      onAbort = () => reject(signal.reason as Error);
      signal.addEventListener('abort', onAbort, { once: true });
      const late = () => {
        const seconds = Math.round(timeoutMs / 1_000);
        const message = `Nobody logged in within ${seconds} s.`;
        reject(new PatchbayError('authorization-required', message));
      };
      timer = setTimeout(late, Math.min(timeoutMs, MAX_TIMER_MS));
      // Only what goes wrong matters: a browser may run for hours.
      Promise.resolve()
        .then(() => open(address, request))
        .catch(reject);
    });
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}

function answer(response: ServerResponse, status: number, text: string): void {
  const headers = {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  };
  response.writeHead(status, headers).end(text);
}
