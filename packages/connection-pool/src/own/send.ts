import type { Stop } from '@patchbay/protocols';
import type { Dispatcher } from 'undici';

import { Incoming, type Answer } from './incoming.ts';

/** A `fetch` with fewer wishes. It follows no redirect. Fails as `fetch` does. */
export type Send = (
  url: URL,
  init: {
    readonly method: 'POST' | 'GET';
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly stop: Stop;
    /** That of `stop`, for whoever waits in between; made when it is asked for. */
    readonly signal: AbortSignal;
  },
) => Promise<Answer>;

/** Sends by sockets of `undici`, without a stream for each answer: what comes is read as it comes. */
export function sendBy(sockets: Dispatcher): Send {
  return ({ origin, pathname, search }, { method, headers, body, stop }) => {
    const wanted = headers as Headers | Record<string, string>;
    const incoming = new Incoming(stop);
    sockets.dispatch(
      {
        origin,
        path: `${pathname}${search}`,
        method,
        headers: wanted instanceof Headers ? Object.fromEntries(wanted) : wanted,
        body: body ?? null,
        // How long something may take is decided by whoever asks.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      incoming,
    );
    return incoming.answer;
  };
}
