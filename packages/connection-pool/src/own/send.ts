import type { Readable } from 'node:stream';
import { createBrotliDecompress, createUnzip } from 'node:zlib';

import type { Dispatcher } from 'undici';

/** As much of a `Response` as is looked at, and its body as it comes. */
export interface Answer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: { get(name: string): string | null };
  readonly body: { cancel(): Promise<void> };
  readonly stream: Readable;
}

/** A `fetch` with fewer wishes. It follows no redirect. Fails as `fetch` does. */
export type Send = (
  url: string,
  init: {
    readonly method: 'POST' | 'GET';
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly signal: AbortSignal;
  },
) => Promise<Answer>;

/** Sends by sockets of `undici`. */
export function sendBy(sockets: Dispatcher): Send {
  return async (url, init) => {
    const { headers: wanted } = init as { readonly headers: Headers | Record<string, string> };
    const { origin, pathname, search } = new URL(url);
    try {
      const { statusCode, statusText, headers, body } = await sockets.request({
        ...init,
        origin,
        path: `${pathname}${search}`,
        headers: wanted instanceof Headers ? Object.fromEntries(wanted) : wanted,
        // How long something may take is decided by whoever asks.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      return {
        status: statusCode,
        statusText,
        headers: { get: (name) => text(headers[name.toLowerCase()]) },
        body: { cancel: () => body.dump().catch(() => undefined) },
        stream: decoded(body, text(headers['content-encoding'])),
      };
    } catch (cause) {
      throw broken(cause);
    }
  };
}

/** What the network says, as `fetch` says it. */
export const broken = (cause: unknown): TypeError => new TypeError('fetch failed', { cause });

const text = (value: string | readonly string[] | undefined): string | null =>
  value === undefined ? null : typeof value === 'string' ? value : value.join(', ');

function decoded(body: Readable, encoding: string | null): Readable {
  if (encoding === null || encoding === 'identity') return body;
  const decoder = encoding === 'br' ? createBrotliDecompress() : createUnzip();
  body.once('error', (error) => decoder.destroy(error));
  decoder.once('close', () => body.destroy());
  return body.pipe(decoder);
}
