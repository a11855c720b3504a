import type { IncomingMessage } from 'node:http';

import type { AuthorizationServer } from './authorization-server.ts';
import type { AccessGrant } from './oauth-grants.ts';
import type { Message } from './scripted-session.ts';

/** Whom a scripted server over HTTP lets in: who has an access token of this authorization server for it. */
export interface Protection {
  readonly by: AuthorizationServer;
  /** Scopes that every request needs. */
  readonly scopes?: readonly string[];
  /** Scopes that the call of a tool needs besides, by the name of the tool. Without them: 403, so that a client asks for more. */
  readonly toolScopes?: Readonly<Record<string, readonly string[]>>;
  /** Says that its metadata is here, instead of where it is. */
  readonly metadataUrl?: string;
  /** Says that these are its authorization servers, instead of `by`. */
  readonly authorizationServers?: readonly string[];
  readonly misbehaviour?: ProtectionMisbehaviour;
}

/** What goes wrong at the door of a server. */
export type ProtectionMisbehaviour =
  /** Refuses every token, also a fresh one: 401. */
  | 'refuses-every-token'
  /** Wants one scope more than the token has, whatever it has: 403. */
  | 'wants-more'
  /** Refuses without saying how to get a token. */
  | 'no-challenge'
  /** Has no metadata. */
  | 'no-metadata'
  /** Its metadata is of another resource. */
  | 'wrong-resource';

/** What is said to who is not let in. */
export interface Refused {
  readonly status: 401 | 403;
  readonly headers: Readonly<Record<string, string>>;
}

const METADATA = '/.well-known/oauth-protected-resource';

/** Whether this path is where the metadata of the server at `served` is looked for. */
export const isMetadata = (path: string, served: string): boolean =>
  path === METADATA || path === METADATA + served;

/** The metadata of the server at `url` (RFC 9728); `undefined` if it has none. */
export function metadataOf(protection: Protection, url: string): object | undefined {
  const { by, scopes = [], authorizationServers, misbehaviour } = protection;
  if (misbehaviour === 'no-metadata') return undefined;
  return {
    resource: misbehaviour === 'wrong-resource' ? 'https://somebody-else.invalid/mcp' : url,
    authorization_servers: authorizationServers ?? [by.issuer],
    bearer_methods_supported: ['header'],
    ...(scopes.length > 0 ? { scopes_supported: scopes } : {}),
  };
}

/** Whether this request to the server at `url` is let in, and as whose. */
export function admit(
  protection: Protection,
  url: string,
  request: IncomingMessage,
  message?: Message,
): AccessGrant | Refused {
  const { by, scopes = [], toolScopes = {}, misbehaviour } = protection;
  const tool = message?.method === 'tools/call' ? String(message.params?.['name']) : undefined;
  const needed = [...scopes, ...(toolScopes[tool ?? ''] ?? [])];
  const refuse = (
    status: Refused['status'],
    error: string | undefined,
    wanted: readonly string[] = scopes,
  ): Refused => ({
    status,
    headers: misbehaviour === 'no-challenge' ? {} : challenge(protection, url, error, wanted),
  });
  const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) return refuse(401, undefined);
  const grant = by.grantOf(token);
  if (grant?.resource !== url || misbehaviour === 'refuses-every-token') {
    return refuse(401, 'invalid_token');
  }
  if (misbehaviour === 'wants-more') {
    return refuse(403, 'insufficient_scope', [...grant.scopes, `more-${grant.scopes.length + 1}`]);
  }
  const missing = needed.some((scope) => !grant.scopes.includes(scope));
  return missing ? refuse(403, 'insufficient_scope', needed) : grant;
}

function challenge(
  { metadataUrl, misbehaviour }: Protection,
  url: string,
  error: string | undefined,
  scopes: readonly string[],
): Readonly<Record<string, string>> {
  const { origin, pathname } = new URL(url);
  const metadata = metadataUrl ?? `${origin}${METADATA}${pathname}`;
  const said = {
    ...(error === undefined ? {} : { error }),
    ...(scopes.length > 0 ? { scope: scopes.join(' ') } : {}),
    ...(misbehaviour === 'no-metadata' ? {} : { resource_metadata: metadata }),
  };
  const fields = Object.entries(said).map(([name, value]) => `${name}="${value}"`);
  return { 'www-authenticate': ['Bearer', fields.join(', ')].join(' ').trim() };
}
