import {
  constants,
  createPublicKey,
  randomUUID,
  timingSafeEqual,
  verify,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

import { OAuthRefusal } from './oauth-refusal.ts';

/** A client that an authorization server knows beforehand. */
export interface OAuthClient {
  readonly id: string;
  /** For `client_secret_basic` and `client_secret_post`. */
  readonly secret?: string;
  /** For `private_key_jwt`: PEM, or a JWK. */
  readonly publicKey?: string | JsonWebKey;
  /** Where its users may be sent back to. Of an address of this machine, any port will do. */
  readonly redirectUris?: readonly string[];
}

/** What a client says of itself: when it registers, or in a document at its `client_id`. (RFC 7591) */
export interface OAuthClientDocument {
  readonly client_id?: string;
  readonly client_name?: string;
  readonly redirect_uris?: readonly string[];
  readonly token_endpoint_auth_method?: string;
  readonly [field: string]: unknown;
}

const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost']);

/** The clients of an authorization server, and how they prove who they are. */
export class OAuthClients {
  readonly #known: Map<string, OAuthClient>;
  readonly #documents: Readonly<Record<string, OAuthClientDocument>>;
  readonly #usedAssertions = new Set<unknown>();

  constructor(
    known: readonly OAuthClient[],
    documents: Readonly<Record<string, OAuthClientDocument>>,
  ) {
    this.#known = new Map(known.map((client) => [client.id, client]));
    this.#documents = documents;
  }

  /** Registers one dynamically; what it gets as an answer. */
  register(document: OAuthClientDocument): object {
    const { redirect_uris: redirectUris = [], token_endpoint_auth_method: method } = document;
    if (!Array.isArray(redirectUris) || !redirectUris.every((uri) => URL.canParse(uri))) {
      throw new OAuthRefusal('invalid_redirect_uri', 'redirect_uris must be a list of addresses.');
    }
    const id = `client-${randomUUID()}`;
    const secret = method === 'none' ? {} : { secret: randomUUID() };
    this.#known.set(id, { id, redirectUris, ...secret });
    return {
      token_endpoint_auth_method: 'client_secret_basic',
      ...document,
      client_id: id,
      client_id_issued_at: Math.floor(Date.now() / 1000),
      ...('secret' in secret ? { client_secret: secret.secret, client_secret_expires_at: 0 } : {}),
    };
  }

  /** The client that wants its user to be asked. No proof is needed for that. */
  find(id: string | undefined): OAuthClient {
    const known = this.#known.get(id ?? '');
    if (known !== undefined) return known;
    const document = this.#documents[id ?? ''];
    if (id === undefined || document === undefined) {
      throw new OAuthRefusal('invalid_client', `There is no client "${id ?? ''}".`, 401);
    }
    if (document.client_id !== id) {
      throw new OAuthRefusal('invalid_client', `The document at ${id} is of another client.`, 401);
    }
    return { id, redirectUris: document.redirect_uris ?? [] };
  }

  /** The client that asks for a token, after it has proved who it is. `audiences` is what a JWT may be made for. */
  authenticate(
    params: Readonly<Record<string, string>>,
    headers: IncomingHttpHeaders,
    audiences: readonly string[],
  ): OAuthClient {
    if (params['client_assertion_type'] === ASSERTION) return this.#byAssertion(params, audiences);
    const basic = basicOf(headers.authorization);
    const client = this.find(basic?.id ?? params['client_id']);
    if (client.publicKey !== undefined) throw refused('This client signs its requests.');
    const secret = basic?.secret ?? params['client_secret'];
    const { secret: wanted } = client;
    // RFC 6749 wants it form-encoded in a Basic header, and hardly any client does that.
    const accepted = wanted === undefined ? [] : [wanted, encodeURIComponent(wanted)];
    if (wanted !== undefined && !accepted.some((each) => isSame(secret, each))) {
      throw refused('The secret of the client is missing or wrong.');
    }
    return client;
  }

  #byAssertion(
    params: Readonly<Record<string, string>>,
    audiences: readonly string[],
  ): OAuthClient {
    const assertion = params['client_assertion'] ?? '';
    const [head = '', payload = '', signature = ''] = assertion.split('.');
    const { alg } = decoded(head);
    const claims = decoded(payload);
    const client = this.find(typeof claims['sub'] === 'string' ? claims['sub'] : undefined);
    if (client.publicKey === undefined) throw refused('This client has no key to sign with.');
    const signed = Buffer.from(`${head}.${payload}`);
    if (
      !isSigned(String(alg), signed, keyOf(client.publicKey), Buffer.from(signature, 'base64url'))
    )
      throw refused('The signature of the client is wrong.');
    if (claims['iss'] !== client.id) throw refused('The assertion is by somebody else.');
    const audience = [claims['aud']].flat();
    if (!audience.some((each) => audiences.includes(String(each)))) {
      throw refused(`The assertion is for ${audience.join(', ')}.`);
    }
    if (Number(claims['exp']) * 1000 <= Date.now()) throw refused('The assertion has expired.');
    if (claims['jti'] === undefined || this.#usedAssertions.has(claims['jti'])) {
      throw refused('The assertion was used before, or has no jti.');
    }
    this.#usedAssertions.add(claims['jti']);
    return client;
  }
}

/** Whether the users of this client may be sent there. */
export function mayRedirect({ redirectUris = [] }: OAuthClient, uri: string | undefined): boolean {
  if (uri === undefined || !URL.canParse(uri)) return false;
  const wanted = withoutLoopbackPort(uri);
  return redirectUris.some((allowed) => withoutLoopbackPort(allowed) === wanted);
}

function withoutLoopbackPort(uri: string): string {
  const url = new URL(uri);
  if (LOOPBACK.has(url.hostname)) url.port = '';
  return url.href;
}

const refused = (message: string): OAuthRefusal => new OAuthRefusal('invalid_client', message, 401);

function basicOf(header: string | undefined): { id: string; secret: string } | undefined {
  const encoded = /^Basic (.+)$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const [, id = '', secret = ''] =
    /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  return { id, secret };
}

function isSame(given: string | undefined, wanted: string): boolean {
  const [a, b] = [Buffer.from(given ?? ''), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function decoded(part: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
  } catch {
    throw refused('The assertion is not a JWT.');
  }
}

const keyOf = (key: string | JsonWebKey): KeyObject =>
  typeof key === 'string' ? createPublicKey(key) : createPublicKey({ key, format: 'jwk' });

function isSigned(alg: string, signed: Buffer, key: KeyObject, signature: Buffer): boolean {
  const hash = `sha${alg.slice(2)}`;
  try {
    switch (alg.slice(0, 2)) {
      case 'RS':
        return verify(hash, signed, key, signature);
      case 'PS':
        return verify(hash, signed, { key, padding: constants.RSA_PKCS1_PSS_PADDING }, signature);
      case 'ES':
        return verify(hash, signed, { key, dsaEncoding: 'ieee-p1363' }, signature);
      default:
        return alg === 'EdDSA' && verify(null, signed, key, signature);
    }
  } catch {
    // There is no such algorithm, or not for this key.
    return false;
  }
}
