import { randomUUID } from 'node:crypto';

import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';

import type { AuthorizationServer } from '../src/index.ts';

/** What the official client asks for the tokens of a user, kept in memory. `callback` is where the user was sent back. */
export class UserProvider implements OAuthClientProvider {
  readonly redirectUrl = 'http://127.0.0.1:1/callback';
  readonly clientMetadataUrl?: string;
  readonly asked: URL[] = [];
  callback = new URLSearchParams();
  readonly #authorization: AuthorizationServer;
  readonly #user: string | undefined;
  #client: StoredOAuthClientInformation | undefined;
  #tokens: StoredOAuthTokens | undefined;
  #discovery: OAuthDiscoveryState | undefined;
  #verifier = '';
  #state = '';

  constructor(
    authorization: AuthorizationServer,
    options: {
      readonly user?: string;
      readonly client?: StoredOAuthClientInformation;
      readonly clientMetadataUrl?: string;
    } = {},
  ) {
    this.#authorization = authorization;
    this.#user = options.user;
    this.#client = options.client;
    if (options.clientMetadataUrl !== undefined) this.clientMetadataUrl = options.clientMetadataUrl;
  }

  get clientMetadata(): OAuthClientMetadata {
    return {
      client_name: 'test',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
    };
  }

  state(): string {
    return (this.#state = randomUUID());
  }
  clientInformation(): StoredOAuthClientInformation | undefined {
    return this.#client;
  }
  saveClientInformation(client: StoredOAuthClientInformation): void {
    this.#client = client;
  }
  tokens(): StoredOAuthTokens | undefined {
    return this.#tokens;
  }
  saveTokens(tokens: StoredOAuthTokens): void {
    this.#tokens = tokens;
    this.#discovery = undefined;
  }
  codeVerifier(): string {
    return this.#verifier;
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovery;
  }
  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state;
  }
  invalidateCredentials(scope: string): void {
    if (scope === 'all' || scope === 'tokens') this.#tokens = undefined;
    if (scope === 'all' || scope === 'client') this.#client = undefined;
  }
  async redirectToAuthorization(url: URL): Promise<void> {
    this.asked.push(url);
    const back = await this.#authorization.visit(url, this.#user);
    if (back.searchParams.get('state') !== this.#state) throw new Error('state does not match');
    this.callback = back.searchParams;
  }
}
