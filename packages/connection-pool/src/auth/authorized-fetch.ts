import { abortable } from '../pause.ts';
import type { Authorization, Tokens } from './authorization.ts';
import type { Challenge } from './challenge.ts';

type Sdk = typeof import('@modelcontextprotocol/client');
type Fetch = typeof globalThis.fetch;

/** So often one request may widen what is allowed. */
const MAX_STEPS = 2;

/**
 * A `fetch` with the token of an asker in it. What is refused for the token's sake is sent again with a better one: it
 * provably never ran. `onWait` is told of every wait, which may be that for a user.
 */
export function authorizedFetch(
  sdk: Sdk,
  fetch: Fetch,
  authorization: Authorization,
  onWait: (until: Promise<void>) => void,
  /** By which others are asked for the token. */
  ask: Fetch = fetch,
): Fetch {
  return async (input, init) => {
    let steps = 0;
    let isFresh = false;
    for (;;) {
      const tokens = await authorization.tokens();
      const asked = authorization.tick();
      const response = await send(sdk, fetch, authorization, tokens, input, init);
      const challenge = challengeIn(sdk, response, tokens?.access_token);
      if (challenge === undefined || !authorization.isFor(response)) return response;
      await response.body?.cancel();
      if (challenge.kind === 'token' && isFresh) throw authorization.refusedAgain();
      if (challenge.kind === 'scope' && steps++ >= MAX_STEPS)
        throw authorization.wantsMore(challenge.scope);
      const renewed = authorization.renew(challenge, {
        fetch: ask,
        isWaitedFor: isWaitedFor(init),
        asked,
      });
      onWait(renewed);
      await abortable(renewed, init?.signal ?? undefined);
      isFresh = true;
    }
  };
}

async function send(
  sdk: Sdk,
  fetch: Fetch,
  authorization: Authorization,
  tokens: Tokens | undefined,
  input: Parameters<Fetch>[0],
  init: RequestInit | undefined,
): Promise<Response> {
  if (tokens === undefined) return fetch(input, init);
  const { dpop } = authorization;
  if (dpop !== undefined && tokens.token_type?.toLowerCase() === 'dpop') {
    const proving = sdk.withDpop(dpop, () => tokens.access_token)((url, more) => fetch(url, more));
    return proving(input instanceof Request ? input.url : input, init);
  }
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${tokens.access_token}`);
  return fetch(input, { ...init, headers });
}

function challengeIn(
  sdk: Sdk,
  response: Response,
  token: string | undefined,
): Challenge | undefined {
  if (response.status !== 401 && response.status !== 403) return undefined;
  const {
    resourceMetadataUrl: metadataUrl,
    scope,
    error,
  } = sdk.extractWWWAuthenticateParams(response);
  if (response.status === 401) return { kind: 'token', token, metadataUrl, scope };
  return error === 'insufficient_scope' ? { kind: 'scope', token, metadataUrl, scope } : undefined;
}

/**
 * Whether somebody waits for the answer, who can be expected to log in for it. Nobody does for the stream of notifications,
 * for an answer to the server, for a good-bye; but whoever connects waits for the one stream of the old transport.
 */
function isWaitedFor({ method: verb = 'GET', headers, body }: RequestInit = {}): boolean {
  if (verb === 'GET') return !new Headers(headers).has('mcp-protocol-version');
  if (typeof body !== 'string') return false;
  const { id, method } = JSON.parse(body) as { readonly id?: unknown; readonly method?: unknown };
  return id !== undefined && method !== undefined && method !== 'subscriptions/listen';
}
