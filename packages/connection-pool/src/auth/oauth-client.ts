import { randomUUID } from 'node:crypto';

import {
  createPrivateKeyJwtAuth,
  DpopSession,
  type AddClientAuthentication,
  type OAuthClientInformationContext,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client';

import type { ServerAuthorization } from '@patchbay/protocols';

import type { Credentials } from './credential-store.ts';
import { isLoopback } from './guarded-fetch.ts';
import type { RenewalFlow } from './renewal.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** What the official SDK asks about one renewal. What it finds out meanwhile is kept no longer: a server may move. */
export class OAuthClient implements OAuthClientProvider {
  readonly redirectUrl: string | undefined;
  readonly clientMetadataUrl?: string;
  readonly addClientAuthentication?: AddClientAuthentication;
  readonly prepareTokenRequest?: (scope?: string) => Promise<URLSearchParams>;
  readonly saveClientInformation?: (
    client: StoredOAuthClientInformation,
    context?: OAuthClientInformationContext,
  ) => Promise<void>;
  /** The page that the user has to see. */
  authorizationUrl: URL | undefined;
  readonly expectedState: string = randomUUID();
  readonly #flow: RenewalFlow;
  #verifier = '';
  #discovery: OAuthDiscoveryState | undefined;
  #resource: string | undefined;

  /** `redirectUrl`: where the browser comes back to, if somebody logs in. */
  constructor(flow: RenewalFlow, redirectUrl: string | undefined) {
    this.#flow = flow;
    this.redirectUrl = redirectUrl;
    const { grant = 'user', clientId, privateKey, assertion } = flow.config;
    if (flow.clientMetadataUrl !== undefined && clientId === undefined)
      this.clientMetadataUrl = flow.clientMetadataUrl;
    if (privateKey !== undefined) {
      const { pem, algorithm = 'ES256' } = privateKey;
      this.addClientAuthentication = createPrivateKeyJwtAuth({
        issuer: clientId ?? '',
        subject: clientId ?? '',
        privateKey: pem,
        alg: algorithm,
      });
    }
    // Who is configured as somebody does not register as somebody else.
    if (clientId === undefined)
      this.saveClientInformation = async (client, context) => {
        flow.keepSecret(client.client_secret);
        await this.#save(context ?? this, { client: { ...client } });
      };
    if (grant === 'user') return;
    this.prepareTokenRequest = async (scope) =>
      new URLSearchParams({
        ...(grant === 'client'
          ? { grant_type: 'client_credentials' }
          : { grant_type: JWT_BEARER, assertion: await this.#assert(assertion, scope) }),
        ...(scope === undefined ? {} : { scope }),
      });
  }

  get clientMetadata(): OAuthClientMetadata {
    const { config, clientName } = this.#flow;
    const { grant = 'user', clientSecret, privateKey } = config;
    const method =
      privateKey !== undefined
        ? 'private_key_jwt'
        : clientSecret !== undefined
          ? 'client_secret_basic'
          : // A program on the machine of a user keeps no secret.
            this.redirectUrl !== undefined && !isLoopback(new URL(this.redirectUrl).hostname)
            ? undefined
            : 'none';
    const grants: Readonly<Record<string, string[]>> = {
      user: ['authorization_code', 'refresh_token'],
      client: ['client_credentials'],
      assertion: [JWT_BEARER],
    };
    return {
      client_name: clientName,
      redirect_uris: this.redirectUrl === undefined ? [] : [this.redirectUrl],
      grant_types: grants[grant]!,
      ...(grant === 'user' ? { response_types: ['code'] } : {}),
      ...(method === undefined ? {} : { token_endpoint_auth_method: method }),
    };
  }

  /** Of the authorization server that was found. */
  get issuer(): string {
    const { authorizationServerMetadata, authorizationServerUrl } = this.#discovery!;
    return authorizationServerMetadata?.issuer ?? authorizationServerUrl;
  }

  /** Saves what was granted. */
  async grant(tokens: StoredOAuthTokens): Promise<Credentials> {
    const { issuer } = this;
    // What is not said is as it was asked for. (RFC 6749 section 5.1)
    const scope = tokens.scope ?? this.#askedFor();
    return this.#save(
      { issuer },
      { tokens: { ...tokens, issuer, ...(scope === undefined ? {} : { scope }) } },
    );
  }

  state(): string {
    return this.expectedState;
  }

  async clientInformation(
    context?: OAuthClientInformationContext,
  ): Promise<StoredOAuthClientInformation | undefined> {
    const { config, keepSecret } = this.#flow;
    const { clientId, clientSecret, issuer } = config;
    if (clientId !== undefined)
      return {
        client_id: clientId,
        ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
        ...stamp(issuer ?? context?.issuer, context?.issuer),
      };
    const known = (await this.#saved(context))?.client as StoredOAuthClientInformation | undefined;
    keepSecret(known?.client_secret);
    return known !== undefined && this.#mayReturn(known) ? known : undefined;
  }

  /** Nothing: what can be refreshed was tried. */
  tokens(): undefined {
    return undefined;
  }

  saveTokens(): void {
    throw new Error('Tokens are saved by `grant`.');
  }

  redirectToAuthorization(url: URL): void {
    this.authorizationUrl = url;
  }

  saveCodeVerifier(verifier: string): void {
    this.#flow.keepSecret(verifier);
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state;
    // Before anybody sees a page of it.
    const { token_endpoint: token, registration_endpoint: registration } =
      state.authorizationServerMetadata ?? {};
    for (const endpoint of [token, registration])
      if (endpoint !== undefined) this.#flow.guarded.check(new URL(endpoint));
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovery;
  }

  saveResourceUrl(url: string): void {
    this.#resource = url;
  }

  /** Where the authorization server binds tokens to keys. */
  async dpop(): Promise<DpopSession | undefined> {
    const metadata: Readonly<Record<string, unknown>> | undefined =
      this.#discovery?.authorizationServerMetadata;
    if (!Array.isArray(metadata?.['dpop_signing_alg_values_supported'])) return undefined;
    const session = this.#flow.dpop ?? (await DpopSession.create());
    this.#flow.keepDpop(session);
    return session;
  }

  async invalidateCredentials(scope: string): Promise<void> {
    if (this.#discovery === undefined || (scope !== 'client' && scope !== 'all')) return;
    const { issuer } = this;
    await this.#flow.store.save({ ...this.#flow.key, issuer }, { issuer });
  }

  /** A client may come back only to where it was registered for; on this machine the port does not matter. */
  #mayReturn(client: StoredOAuthClientInformation): boolean {
    const { redirectUrl } = this;
    const registered = 'redirect_uris' in client ? client.redirect_uris : undefined;
    if (redirectUrl === undefined || !Array.isArray(registered)) return true;
    const withoutPort = (text: string) => {
      const url = new URL(text);
      if (isLoopback(url.hostname)) url.port = '';
      return url.href;
    };
    return registered.some((each: string) => withoutPort(each) === withoutPort(redirectUrl));
  }

  async #assert(
    assertion: ServerAuthorization['assertion'],
    scope: string | undefined,
  ): Promise<string> {
    const made = await assertion!({
      issuer: this.issuer,
      resource: this.#resource ?? this.#flow.server.href,
      ...(scope === undefined ? {} : { scope }),
    });
    this.#flow.keepSecret(made);
    return made;
  }

  async #saved(
    context: OAuthClientInformationContext | undefined,
  ): Promise<Credentials | undefined> {
    const { store, key } = this.#flow;
    return context === undefined ? undefined : store.load({ ...key, issuer: context.issuer });
  }

  async #save(
    { issuer }: OAuthClientInformationContext,
    some: Partial<Credentials>,
  ): Promise<Credentials> {
    const { store, key } = this.#flow;
    const known = await store.load({ ...key, issuer });
    const credentials = { ...known, ...some, issuer };
    await store.save({ ...key, issuer }, credentials);
    return credentials;
  }

  #askedFor(): string | undefined {
    return this.authorizationUrl?.searchParams.get('scope') ?? this.#flow.scope;
  }
}

/** For whom a client is; as the authorization server writes it, if that is the same but for a slash at the end. */
function stamp(
  named: string | undefined,
  issuer: string | undefined,
): { readonly issuer?: string } {
  if (named === undefined) return {};
  const bare = (text: string | undefined) => text?.replace(/\/$/, '');
  return { issuer: issuer !== undefined && bare(named) === bare(issuer) ? issuer : named };
}
