import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

import { PatchbayError } from '@patchbay/protocols';

import { isPublicAddress, type AllowAddress } from '../http/public-address.ts';

/** Milliseconds and bytes that one answer of an authorization server may take. */
const MAX_MS = 10_000;
const MAX_BYTES = 1_000_000;

export interface GuardOptions {
  /** The server that access is wanted to. */
  readonly server: URL;
  /** The authorization server that the program named itself. */
  readonly issuer: string | undefined;
  /** How requests to the server are sent. */
  readonly fetch: typeof globalThis.fetch;
  /** The program's own: it decides which address a name means. */
  readonly isOwnFetch: boolean;
  readonly allowAddress: AllowAddress | undefined;
  readonly signal: AbortSignal;
}

/**
 * A `fetch` for what a server says about its authorization: it may name any address. Followed are https, public addresses
 * (those that a socket goes to), what is on this machine for a server on this machine, and the `issuer` that the program
 * named. Nothing else is asked, and after a refusal nothing at all: it is no mistake to be guessed around.
 */
export class GuardedFetch {
  readonly #options: GuardOptions;
  #checked: { fetch: typeof globalThis.fetch; close: () => Promise<void> } | undefined;
  refusal: PatchbayError | undefined;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  readonly fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
    if (this.refusal !== undefined) throw this.refusal;
    const url = new URL(input);
    // By hand: Node 20 forgets a timeout that only a combined signal refers to.
    const { signal } = this.#options;
    const stop = new AbortController();
    const onEnd = () => stop.abort(signal.reason);
    signal.addEventListener('abort', onEnd, { once: true });
    const late = new PatchbayError(
      'authorization-failed',
      `${named(url)} did not answer within ${MAX_MS / 1_000} s.`,
    );
    const timer = setTimeout(() => stop.abort(late), MAX_MS);
    try {
      signal.throwIfAborted();
      const send = await this.#fetchFor(url, init?.method ?? 'GET');
      const request = { ...init, redirect: 'manual', signal: stop.signal } as const;
      return await whole(await send(url, request), url);
    } catch (error) {
      const { cause } = error as { readonly cause?: unknown };
      const refusal = [error, cause].find((one) => PatchbayError.isInstance(one));
      if (refusal !== undefined) this.refusal = refusal;
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onEnd);
    }
  };

  async close(): Promise<void> {
    await this.#checked?.close();
  }

  /**
   * Looks at an address before anything is sent to it.
   * @throws PatchbayError `authorization-failed`
   */
  check(url: URL): void {
    const { server } = this.#options;
    if (url.username !== '' || url.password !== '')
      throw refused(url, 'has a user and a password in it');
    const isLocal = isLoopback(server.hostname) && isLoopback(url.hostname);
    if (url.protocol !== 'https:' && !(isLocal && url.protocol === 'http:'))
      throw refused(url, 'is not encrypted (https)');
  }

  async #fetchFor(url: URL, method: string): Promise<typeof globalThis.fetch> {
    const { server, issuer, fetch, isOwnFetch } = this.#options;
    const isLocal = isLoopback(server.hostname);
    // What the server itself says may be asked as the server is.
    const isServer = url.origin === server.origin;
    if (!isServer || method !== 'GET') this.check(url);
    if (isServer || (issuer !== undefined && url.origin === originOf(issuer))) return fetch;
    const allow: AllowAddress = (address, host) =>
      (isPublicAddress(address) || (isLocal && isLoopback(address))) &&
      this.#options.allowAddress?.(address, host) !== false;
    if (isOwnFetch) {
      await checkAddresses(url, allow);
      return fetch;
    }
    if (this.#checked === undefined) {
      const { checkedFetch } = await import('../http/checked-fetch.ts');
      this.#checked = checkedFetch(allow);
    }
    return this.#checked.fetch;
  }
}

/** The program's own `fetch` decides where a name leads to: what is known of it here is all that can be looked at. */
async function checkAddresses(url: URL, allow: AllowAddress): Promise<void> {
  const host = url.hostname.replaceAll(/^\[|\]$/g, '');
  const found =
    isIP(host) === 0 ? await lookup(host, { all: true }).catch(() => []) : [{ address: host }];
  for (const { address } of found)
    if (!allow(address, host)) throw refused(url, `is inside of a private network (${address})`);
}

/** Of `localhost`, its kin, and their addresses. */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  /^\[?::1\]?$/.test(hostname) ||
  /^127(\.\d+){3}$/.test(hostname);

const originOf = (url: string): string | undefined =>
  URL.canParse(url) ? new URL(url).origin : undefined;

function refused(url: URL, why: string): PatchbayError {
  return new PatchbayError(
    'authorization-failed',
    `${named(url)} is not asked about it: it ${why}. If it has to be, name it as \`issuer\` in the server's \`auth\`.`,
  );
}

/** Without what may be meant for others than people. */
const named = ({ protocol, host }: URL): string =>
  JSON.stringify(`${protocol}//${host}`.slice(0, 200));

/** The response with all of its body, or an error if that is too long. */
async function whole(response: Response, url: URL): Promise<Response> {
  if (response.body === null) return response;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES)
      throw new PatchbayError(
        'authorization-failed',
        `What ${named(url)} says about it is longer than ${MAX_BYTES} bytes.`,
      );
    chunks.push(chunk);
  }
  const { status, statusText, headers } = response;
  return new Response(Buffer.concat(chunks), { status, statusText, headers });
}
