import { PatchbayError } from '@patchbay/protocols';
import * as sdk from '@modelcontextprotocol/client';

import type { AuthorizationOptions, Tokens } from './authorization.ts';
import type { Challenge } from './challenge.ts';
import type { CredentialKey, Credentials } from './credential-store.ts';
import { GuardedFetch, isLoopback } from './guarded-fetch.ts';
import type { LoginHandler } from './login.ts';
import { OAuthClient } from './oauth-client.ts';

/** What proves whose tokens are. (RFC 9449) */
export type Dpop = sdk.DpopSession;

/** Everything that a renewal needs. */
export interface RenewalMeans extends AuthorizationOptions {
  /** How requests to the server are sent. */
  readonly fetch: typeof globalThis.fetch;
  readonly challenge: Challenge;
  /** What to ask for, separated by spaces. */
  readonly scope: string | undefined;
  readonly key: CredentialKey;
  /** What there was until now. */
  readonly saved: Credentials | undefined;
  readonly dpop: Dpop | undefined;
  readonly keepDpop: (dpop: Dpop) => void;
  readonly keepSecret: (secret: string | undefined) => void;
  /** Begins a login, or says why that is not possible. */
  readonly begin: LoginHandler['begin'];
}

/** What a flow uses. */
export interface RenewalFlow extends RenewalMeans {
  readonly guarded: GuardedFetch;
}

/**
 * Gets a token that answers a challenge: with the refresh token, if there is one and it can; else with the program's own
 * credentials, or by a login.
 * @throws anything: what the network, the authorization server, the SDK, or a login says
 */
export async function renew(means: RenewalMeans): Promise<Credentials> {
  const { server, config, fetch, isOwnFetch, allowAddress, signal } = means;
  const guarded = new GuardedFetch({
    server,
    issuer: config.issuer,
    fetch,
    isOwnFetch,
    allowAddress,
    signal,
  });
  try {
    const { grant = 'user' } = config;
    const flow = { ...means, guarded };
    if (grant !== 'user') return await byProgram(flow);
    return (await byRefresh(flow)) ?? (await byLogin(flow));
  } catch (error) {
    // The SDK goes on after some refusals, and then fails of something else.
    throw guarded.refusal ?? error;
  } finally {
    await guarded.close();
  }
}

/** What a server says about who gives access to it. Asked each time: a server may move. */
async function discover({ server, challenge, guarded }: RenewalFlow, client: OAuthClient) {
  const found = await sdk.discoverOAuthServerInfo(server, {
    fetchFn: guarded.fetch,
    ...(challenge.metadataUrl === undefined ? {} : { resourceMetadataUrl: challenge.metadataUrl }),
  });
  client.saveDiscoveryState(found);
  return found;
}

/** What the SDK needs to ask a known authorization server for tokens. */
async function asking({ server, guarded }: RenewalFlow, client: OAuthClient) {
  const { authorizationServerMetadata: metadata, resourceMetadata } = client.discoveryState()!;
  const isKnown = await sdk.selectResourceURL(server, client, resourceMetadata);
  const resource = isKnown === undefined ? undefined : resourceMetadata?.resource;
  if (resource !== undefined) client.saveResourceUrl(resource);
  return {
    ...(metadata === undefined ? {} : { metadata }),
    ...(resource === undefined ? {} : { resource }),
    fetchFn: guarded.fetch,
  };
}

async function byProgram(flow: RenewalFlow): Promise<Credentials> {
  const client = new OAuthClient(flow, undefined);
  const { authorizationServerUrl, resourceMetadata } = await discover(flow, client);
  const scope = flow.scope ?? resourceMetadata?.scopes_supported?.join(' ');
  const options = await asking(flow, client);
  const tokens = await sdk.fetchToken(client, authorizationServerUrl, {
    ...options,
    ...(scope === undefined ? {} : { scope }),
  });
  return client.grant(tokens);
}

/** `undefined`: there is nothing to refresh with, or it is not accepted (any more). */
async function byRefresh(flow: RenewalFlow): Promise<Credentials | undefined> {
  const { challenge, saved, store, key } = flow;
  const tokens = saved?.tokens as Tokens | undefined;
  // What a refresh token allows does not grow.
  if (tokens?.refresh_token === undefined || challenge.kind === 'scope') return undefined;
  const client = new OAuthClient(flow, undefined);
  const { authorizationServerUrl } = await discover(flow, client);
  const { issuer } = client;
  // Another authorization server must not see them.
  if (tokens.issuer !== issuer) return undefined;
  const clientInformation = await client.clientInformation({ issuer });
  if (clientInformation === undefined) return undefined;
  const options = await asking(flow, client);
  const dpop = await client.dpop();
  const { addClientAuthentication } = client;
  try {
    const fresh = await sdk.refreshAuthorization(authorizationServerUrl, {
      ...options,
      clientInformation,
      refreshToken: tokens.refresh_token,
      ...(addClientAuthentication === undefined ? {} : { addClientAuthentication }),
      ...(dpop === undefined ? {} : { dpop }),
    });
    return await client.grant({ ...fresh, scope: fresh.scope ?? tokens.scope });
  } catch (error) {
    const code: string = sdk.OAuthError.isInstance(error) ? error.code : '';
    if (!NO_LONGER.has(code)) throw error;
    const isOfClient = CLIENT_UNKNOWN.has(code);
    await store.save(
      { ...key, issuer },
      { issuer, ...(isOfClient || saved?.client === undefined ? {} : { client: saved.client }) },
    );
    return undefined;
  }
}

/** What an authorization server says of a client that it does not accept, and what it says of a refresh token. */
const CLIENT_UNKNOWN: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client']);
const NO_LONGER: ReadonlySet<string> = new Set([
  ...CLIENT_UNKNOWN,
  'invalid_grant',
  'invalid_dpop_proof',
]);

async function byLogin(flow: RenewalFlow): Promise<Credentials> {
  const { server, label, identity, config, challenge, scope, signal, guarded } = flow;
  const { callbackPort } = config;
  const login = await flow.begin({ server: server.href, label, identity, callbackPort, signal });
  try {
    const client = new OAuthClient(flow, login.redirectUrl);
    await sdk.auth(client, {
      serverUrl: server,
      fetchFn: guarded.fetch,
      ...(scope === undefined ? {} : { scope }),
      ...(challenge.metadataUrl === undefined
        ? {}
        : { resourceMetadataUrl: challenge.metadataUrl }),
    });
    const back = new URL(await login.visit(visitable(client.authorizationUrl)));
    return await redeem(flow, client, back.searchParams);
  } finally {
    await login.close?.();
  }
}

/** Changes what a browser brought back into tokens, if it is from the login that was begun. */
async function redeem(
  flow: RenewalFlow,
  client: OAuthClient,
  back: URLSearchParams,
): Promise<Credentials> {
  const { authorizationServerUrl, authorizationServerMetadata: metadata } =
    client.discoveryState()!;
  const [code, iss] = [back.get('code') ?? undefined, back.get('iss') ?? undefined];
  flow.keepSecret(code);
  if (back.get('state') !== client.expectedState)
    throw failed('the browser came back from another login (`state`). Try again.');
  // Before anything else that came back is believed. (RFC 9207)
  sdk.validateAuthorizationResponseIssuer({
    iss,
    expectedIssuer: metadata?.issuer,
    issParameterSupported:
      metadata !== undefined && 'authorization_response_iss_parameter_supported' in metadata
        ? metadata.authorization_response_iss_parameter_supported === true
        : false,
  });
  if (code === undefined) {
    const said = back.get('error_description') ?? back.get('error') ?? 'nothing';
    throw failed(`the login was refused (${JSON.stringify(said.slice(0, 200))}).`);
  }
  const tokens = await sdk.fetchToken(client, authorizationServerUrl, {
    ...(await asking(flow, client)),
    authorizationCode: code,
    ...(iss === undefined ? {} : { iss }),
  });
  return client.grant(tokens);
}

/** Only what a browser shows as a page, and without anything that could mean more to whoever opens it. */
function visitable(url: URL | undefined): URL {
  const isPage =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  if (isPage && url.username === '' && url.password === '') return url;
  const what = JSON.stringify(url?.href.slice(0, 200) ?? '');
  throw failed(`its authorization server wants ${what} to be opened, which is no page of https.`);
}

const failed = (why: string): PatchbayError => new PatchbayError('authorization-failed', why);
