import {
  PatchbayError,
  type AcquireOptions,
  type HttpServerConfig,
  type ServerAuthorization,
} from '@patchbay/protocols';

import { authKey, serverName } from '../connection-key.ts';
import { Authorization, type AuthorizationOptions } from './authorization.ts';
import { memoryCredentials, type CredentialStore } from './credential-store.ts';
import type { LoginHandler } from './login.ts';

/** How a pool gets access to servers over HTTP that ask for it. */
export interface PoolAuthorization {
  /** How users log in. Without it a server that needs that is `authorization-required`. */
  readonly login?: LoginHandler;
  /** Where tokens are kept. Default: in memory, as long as the pool lives. */
  readonly credentials?: CredentialStore;
  /** An https address where the program's client metadata document is: it is known by that, without a registration. */
  readonly clientMetadataUrl?: string;
}

/** What all of a pool have in common. */
type SharedOptions = Pick<AuthorizationOptions, 'clientName' | 'allowAddress' | 'now'>;

/** The access of every asker to every server: one {@link Authorization} for all connections that use the same. */
export class Authorizations {
  readonly #options: PoolAuthorization;
  readonly #shared: SharedOptions;
  readonly #credentials: CredentialStore;
  readonly #known = new Map<string, Authorization>();
  readonly #end = new AbortController();

  constructor(options: PoolAuthorization, shared: SharedOptions) {
    this.#options = options;
    this.#shared = shared;
    this.#credentials = options.credentials ?? memoryCredentials();
  }

  /**
   * What gets a connection in; `undefined` where the configuration brings its own.
   * @throws PatchbayError `invalid-config`
   */
  for(
    config: HttpServerConfig,
    headers: Readonly<Record<string, string>>,
    { identity }: AcquireOptions,
    objectId: (object: object) => number,
  ): Authorization | undefined {
    const hasOwn = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
    const { auth = {} } = config;
    if (hasOwn && config.auth !== undefined)
      throw invalid(config, 'would never be used: there is an `authorization` in the `headers`.');
    if (hasOwn || !URL.canParse(config.url)) return undefined;
    check(config, auth);
    // What everybody shares is nobody's own.
    const whose = config.sharing === 'everyone' ? undefined : identity;
    const { login, clientMetadataUrl } = this.#options;
    const fetchId = config.fetch === undefined ? 0 : objectId(config.fetch);
    const key = JSON.stringify([config.url, whose?.id ?? '', authKey(auth, objectId), fetchId]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made = new Authorization({
      ...this.#shared,
      server: withoutFragment(config.url),
      label: serverName(config),
      identity: whose,
      config: auth,
      isExpected: config.auth !== undefined || login !== undefined,
      login,
      store: this.#credentials,
      clientMetadataUrl,
      isOwnFetch: config.fetch !== undefined,
      signal: this.#end.signal,
    });
    this.#known.set(key, made);
    return made;
  }

  /** Nobody uses these any more. What was granted is in the store. */
  keepOnly(used: ReadonlySet<Authorization | undefined>): void {
    for (const [key, one] of this.#known) if (!used.has(one)) this.#known.delete(key);
  }

  /** Logins under way are given up. */
  close(): void {
    this.#end.abort(new PatchbayError('closed', 'The connection pool was closed.'));
  }
}

const invalid = (config: HttpServerConfig, what: string): PatchbayError =>
  new PatchbayError('invalid-config', `The \`auth\` of ${serverName(config)} ${what}`);

function check(config: HttpServerConfig, auth: ServerAuthorization): void {
  const { grant = 'user', clientId, clientSecret, privateKey, issuer, assertion } = auth;
  const hasSecret = clientSecret !== undefined || privateKey !== undefined;
  const need = (is: boolean, what: string) => {
    if (!is) throw invalid(config, what);
  };
  need(issuer === undefined || URL.canParse(issuer), 'has an `issuer` that is no URL.');
  need(
    privateKey === undefined || clientId !== undefined,
    'has a `privateKey` without the `clientId` that it is for.',
  );
  need(
    issuer !== undefined || (grant === 'user' && !hasSecret),
    'must name the `issuer` that its credentials are for: the server could have them sent anywhere.',
  );
  if (grant === 'user') return;
  need(clientId !== undefined, 'needs a `clientId`.');
  if (grant === 'assertion') need(assertion !== undefined, 'needs an `assertion`.');
  else need(hasSecret, 'needs a `clientSecret` or a `privateKey`.');
}

function withoutFragment(text: string): URL {
  const url = new URL(text);
  url.hash = '';
  return url;
}
