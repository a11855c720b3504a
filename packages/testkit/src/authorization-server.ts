import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

import {
  METADATA_FAULTS,
  REDIRECT_FAULTS,
  TOKEN_FAULTS,
  type AuthorizationMisbehaviour,
} from './authorization-misbehaviour.ts';
import {
  mayRedirect,
  OAuthClients,
  type OAuthClient,
  type OAuthClientDocument,
} from './oauth-clients.ts';
import { OAuthGrants, type AccessGrant, type TokenAnswer } from './oauth-grants.ts';
import { OAuthRefusal } from './oauth-refusal.ts';
import { listening } from './scripted-stdio.ts';

/** Whom an authorization server knows, and what it gives. */
export interface AuthorizationServerOptions {
  /** Clients that are registered beforehand. */
  readonly clients?: readonly OAuthClient[];
  /** Clients that are known by a document at their `client_id`, an https address: what is there. Nothing is fetched. */
  readonly clientDocuments?: Readonly<Record<string, OAuthClientDocument>>;
  /** Whether clients may register themselves. Default: true. */
  readonly registration?: boolean;
  /** What may be granted. Default: nothing. */
  readonly scopes?: readonly string[];
  /** How long an access token is good for, in seconds. Default: 3600. */
  readonly lifetime?: number;
  /** Whether a refresh token is good for one use, and brings the next one. Default: true. */
  readonly rotation?: boolean;
  readonly misbehaviour?: AuthorizationMisbehaviour;
}

/** How a client asks for tokens. */
export type GrantType = 'authorization_code' | 'refresh_token' | 'client_credentials';

/** Something that was asked of an authorization server. */
export interface AuthorizationRequest {
  /** `elsewhere`: the other origin that `metadata-elsewhere` leads to. */
  readonly endpoint: 'metadata' | 'registration' | 'authorization' | 'token' | 'elsewhere';
  /** Of the query, or of the body. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Why it was refused: `invalid_grant`, `access_denied` … */
  readonly error?: string;
}

/** An OAuth 2.1 authorization server whose only user agrees to everything at once, and needs no browser for that. */
export interface AuthorizationServer extends AsyncDisposable {
  readonly issuer: string;
  /** Everything that was asked, in order. */
  readonly requests: readonly AuthorizationRequest[];
  /** How often tokens were asked for, in one way or in any; refused requests count. */
  tokenRequests(grant?: GrantType): number;
  /** What an access token allows; `undefined` if it is unknown, expired or revoked. */
  grantOf(accessToken: string): AccessGrant | undefined;
  /**
   * What the browser of a user does with an authorization request: where it is sent back to, with `code`, `state`, `iss`.
   * @throws Error if the server does not send it back, as it must when client or address are unknown.
   */
  visit(address: string | URL, user?: string): Promise<URL>;
  /** All access tokens of now expire. */
  expireTokens(): void;
  /** All access tokens and refresh tokens of now are void: the user has to be asked again. */
  revokeAll(): void;
  /** Goes wrong in this way from now on; `undefined`: no more. */
  misbehave(misbehaviour: AuthorizationMisbehaviour | undefined): void;
  close(): Promise<void>;
}

type Params = Readonly<Record<string, string>>;

/** An answer of an endpoint: a status and a body, or where to go instead. */
type Answer =
  | { readonly status: number; readonly body: object | string; readonly error?: string }
  | { readonly location: string; readonly error?: string };

/**
 * An authorization server for tests: metadata, registration, PKCE, refresh, client credentials. Who guards a
 * `scriptedServer` with it needs `protection`.
 *
 * @example
 * await using authorization = await authorizationServer({ scopes: ['read', 'write'] });
 * await using server = await scriptedServer({ transport: 'http', protection: { by: authorization } });
 */
export async function authorizationServer(
  options: AuthorizationServerOptions = {},
): Promise<AuthorizationServer> {
  const { registration = true, scopes = [], clientDocuments = {} } = options;
  const clients = new OAuthClients(options.clients ?? [], clientDocuments);
  const grants = new OAuthGrants(options.lifetime ?? 3600, options.rotation ?? true);
  const requests: AuthorizationRequest[] = [];
  let { misbehaviour } = options;
  let issuer = '';
  let elsewhere = '';

  const honestMetadata = () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    ...(registration ? { registration_endpoint: `${issuer}/register` } : {}),
    ...(options.clientDocuments ? { client_id_metadata_document_supported: true } : {}),
    ...(scopes.length > 0 ? { scopes_supported: scopes } : {}),
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: [
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
      'none',
    ],
    token_endpoint_auth_signing_alg_values_supported: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    authorization_response_iss_parameter_supported: true,
  });

  const metadata = (): Answer => {
    const honest = honestMetadata();
    if (misbehaviour === 'no-metadata') return { status: 404, body: '' };
    if (misbehaviour === 'metadata-elsewhere') return { location: elsewhere };
    return { status: 200, body: METADATA_FAULTS[misbehaviour ?? '']?.(honest) ?? honest };
  };

  const register = (document: OAuthClientDocument): Answer => {
    if (!registration || misbehaviour === 'refuses-registration') {
      throw new OAuthRefusal('access_denied', 'Clients do not register here.', 403);
    }
    return { status: 201, body: clients.register(document) };
  };

  const granted = (scope: string | undefined): readonly string[] => {
    const asked = new Set((scope ?? '').split(' '));
    const given = scopes.filter((each) => asked.has(each));
    return misbehaviour === 'fewer-scopes' ? given.slice(0, -1) : given;
  };

  const authorize = (params: Params): Answer => {
    const client = clients.find(params['client_id']);
    const redirectUri = params['redirect_uri'];
    if (redirectUri === undefined || !mayRedirect(client, redirectUri)) {
      throw new OAuthRefusal('invalid_request', 'The redirect_uri is none of this client.');
    }
    const error = faultOf(params) ?? (misbehaviour === 'denies' ? 'access_denied' : undefined);
    const back = new URL(redirectUri);
    const set = (name: string, value: string | undefined) => {
      if (value !== undefined) back.searchParams.set(name, value);
    };
    set('error', error);
    set('state', params['state']);
    set('iss', issuer);
    if (error === undefined) {
      const code = grants.code({
        clientId: client.id,
        user: params['user'],
        scopes: granted(params['scope']),
        resource: params['resource'],
        redirectUri,
        challenge: params['code_challenge'] ?? '',
      });
      set('code', code);
    }
    REDIRECT_FAULTS[misbehaviour ?? '']?.(back.searchParams);
    return { location: back.href, ...(error === undefined ? {} : { error }) };
  };

  const tokensFor = (client: OAuthClient, params: Params): TokenAnswer => {
    switch (params['grant_type']) {
      case 'authorization_code':
        return grants.forCode(client.id, params);
      case 'refresh_token':
        if (misbehaviour !== 'refuses-refresh') return grants.forRefresh(client.id, params);
        throw new OAuthRefusal('invalid_grant', 'The refresh token is not valid (any more).');
      case 'client_credentials': {
        if (client.secret === undefined && client.publicKey === undefined) {
          throw new OAuthRefusal('unauthorized_client', 'Who has no secret gets nothing for it.');
        }
        const given = granted(params['scope']);
        const { resource } = params;
        return grants.forClient({ clientId: client.id, user: undefined, scopes: given, resource });
      }
      default:
        throw new OAuthRefusal('unsupported_grant_type', 'There is no such way to get a token.');
    }
  };

  const token = (params: Params, { headers }: IncomingMessage): Answer => {
    const fault = TOKEN_FAULTS[misbehaviour ?? ''];
    if (fault !== undefined) return fault;
    const client = clients.authenticate(params, headers, [issuer, `${issuer}/token`]);
    const answer = tokensFor(client, params);
    const kept = misbehaviour === 'no-refresh-token' ? { refresh_token: undefined } : {};
    return { status: 200, body: { ...answer, ...kept } };
  };

  const route = async (request: IncomingMessage): Promise<Answer | undefined> => {
    const url = new URL(request.url ?? '/', issuer);
    const log = (
      endpoint: AuthorizationRequest['endpoint'],
      params: Readonly<Record<string, unknown>>,
      answer: () => Answer,
    ): Answer | undefined => {
      const at = requests.push({ endpoint, params }) - 1;
      if (misbehaviour === 'silent') return undefined;
      const given = answered(answer);
      if (given.error !== undefined) requests[at] = { endpoint, params, error: given.error };
      return given;
    };
    const query = Object.fromEntries(url.searchParams);
    switch (`${request.method} ${url.pathname}`) {
      case 'GET /.well-known/oauth-authorization-server':
        return log('metadata', query, metadata);
      case 'GET /elsewhere':
        return log('elsewhere', query, () => ({ status: 200, body: honestMetadata() }));
      case 'GET /authorize':
        return log('authorization', query, () => authorize(query));
      case 'POST /register': {
        const document = documentOf(await text(request));
        return log('registration', document, () => register(document));
      }
      case 'POST /token': {
        const params = Object.fromEntries(new URLSearchParams(await text(request)));
        return log('token', params, () => token(params, request));
      }
      default:
        return { status: 404, body: '' };
    }
  };

  const server = createServer((request, response) => {
    route(request).then(
      (answer) => send(response, answer),
      () => response.destroy(),
    );
  });
  const port = await listening(server);
  issuer = `http://127.0.0.1:${port}`;
  elsewhere = `http://localhost:${port}/elsewhere`;
  const close = async () => {
    if (!server.listening) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    issuer,
    requests,
    tokenRequests: (grant) =>
      requests.filter(
        ({ endpoint, params }) =>
          endpoint === 'token' && (grant === undefined || params['grant_type'] === grant),
      ).length,
    grantOf: (accessToken) => grants.of(accessToken),
    visit: async (address, user) => {
      const url = new URL(address);
      if (user !== undefined) url.searchParams.set('user', user);
      const response = await fetch(url, { redirect: 'manual' });
      const said = await response.text();
      const location = response.headers.get('location');
      if (location === null) throw new Error(`The user is not sent back: ${said}`);
      return new URL(location);
    },
    expireTokens: () => grants.expire(),
    revokeAll: () => grants.revoke(),
    misbehave: (next) => {
      misbehaviour = next;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function answered(answer: () => Answer): Answer {
  try {
    return answer();
  } catch (error) {
    if (!(error instanceof OAuthRefusal)) throw error;
    const { status, code, message } = error;
    return { status, body: { error: code, error_description: message }, error: code };
  }
}

/** What is wrong with a request to ask the user. */
function faultOf(params: Params): string | undefined {
  if (params['response_type'] !== 'code') return 'unsupported_response_type';
  const { code_challenge: challenge, code_challenge_method: method } = params;
  return challenge === undefined || method !== 'S256' ? 'invalid_request' : undefined;
}

/** What a client says of itself; nothing, if it is no JSON object. */
function documentOf(body: string): OAuthClientDocument {
  try {
    const document: unknown = JSON.parse(body);
    return typeof document === 'object' && document !== null ? { ...document } : {};
  } catch {
    return {};
  }
}

function send(response: ServerResponse, answer: Answer | undefined): void {
  // Kept open, so that a client waits.
  if (answer === undefined) return;
  if ('location' in answer) {
    response.writeHead(302, { location: answer.location }).end();
    return;
  }
  const { status, body } = answer;
  const type = typeof body === 'string' ? 'text/html' : 'application/json';
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}
