import { createHash, randomUUID } from 'node:crypto';

import { OAuthRefusal } from './oauth-refusal.ts';

/** What an access token allows. */
export interface AccessGrant {
  readonly clientId: string;
  /** Who agreed, if that was said to `visit`. Nobody for the credentials of a client. */
  readonly user: string | undefined;
  readonly scopes: readonly string[];
  /** The one resource that it is for. (RFC 8707) */
  readonly resource: string | undefined;
}

/** What a user agreed to, until the client fetches the tokens for it. */
export interface CodeGrant extends AccessGrant {
  readonly redirectUri: string;
  readonly challenge: string;
}

interface Issued extends AccessGrant {
  /** Of everything that came from one consent. */
  readonly family: string;
}

/** Tokens as an endpoint answers with them. (RFC 6749) */
export interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  /** In seconds. */
  readonly expires_in: number;
  readonly scope: string;
  readonly refresh_token?: string;
}

/** What an authorization server has given out. */
export class OAuthGrants {
  readonly #lifetime: number;
  readonly #rotates: boolean;
  readonly #codes = new Map<string, CodeGrant>();
  readonly #access = new Map<string, Issued & { readonly until: number }>();
  readonly #refresh = new Map<string, Issued>();
  readonly #used = new Map<string, Issued>();

  /** `lifetime` of access tokens, in seconds; `rotates`: a refresh token is good for one use. */
  constructor(lifetime: number, rotates: boolean) {
    this.#lifetime = lifetime;
    this.#rotates = rotates;
  }

  /** What an access token allows now. */
  of(token: string): AccessGrant | undefined {
    const issued = this.#access.get(token);
    if (issued === undefined || issued.until <= Date.now()) return undefined;
    const { clientId, user, scopes, resource } = issued;
    return { clientId, user, scopes, resource };
  }

  expire(): void {
    this.#access.clear();
  }

  revoke(): void {
    for (const given of [this.#codes, this.#access, this.#refresh]) given.clear();
  }

  code(grant: CodeGrant): string {
    const code = randomUUID();
    this.#codes.set(code, grant);
    return code;
  }

  /** For a code, once. */
  forCode(clientId: string, params: Readonly<Record<string, string>>): TokenAnswer {
    const code = params['code'] ?? '';
    const grant = this.#codes.get(code);
    this.#codes.delete(code);
    if (grant?.clientId !== clientId) throw invalid('The code is unknown, or was used before.');
    const { challenge, redirectUri, resource } = grant;
    const proof = createHash('sha256')
      .update(params['code_verifier'] ?? '')
      .digest('base64url');
    if (proof !== challenge) throw invalid('The code_verifier does not fit the code_challenge.');
    if (params['redirect_uri'] !== redirectUri) throw invalid('The redirect_uri is another one.');
    checkResource(resource, params);
    return this.#issue({ ...grant, family: randomUUID() }, true);
  }

  /** For a refresh token. One that was used before ends everything that came from the same consent. (RFC 9700) */
  forRefresh(clientId: string, params: Readonly<Record<string, string>>): TokenAnswer {
    const token = params['refresh_token'] ?? '';
    const used = this.#used.get(token);
    if (used !== undefined) this.#endFamily(used.family);
    const grant = this.#refresh.get(token);
    if (grant?.clientId !== clientId) throw invalid('The refresh token is not valid (any more).');
    checkResource(grant.resource, params);
    const scopes = params['scope']?.split(' ') ?? grant.scopes;
    if (!scopes.every((scope) => grant.scopes.includes(scope))) {
      throw new OAuthRefusal('invalid_scope', 'A refresh gives no further scopes.');
    }
    if (this.#rotates) {
      this.#refresh.delete(token);
      this.#used.set(token, grant);
    }
    return this.#issue({ ...grant, scopes }, this.#rotates);
  }

  /** For a client itself, without a user. */
  forClient(grant: AccessGrant): TokenAnswer {
    return this.#issue({ ...grant, family: randomUUID() }, false);
  }

  #issue(grant: Issued, withRefresh: boolean): TokenAnswer {
    const token = randomUUID();
    this.#access.set(token, { ...grant, until: Date.now() + this.#lifetime * 1000 });
    const refreshToken = randomUUID();
    if (withRefresh) this.#refresh.set(refreshToken, grant);
    return {
      access_token: token,
      token_type: 'Bearer',
      expires_in: this.#lifetime,
      scope: grant.scopes.join(' '),
      ...(withRefresh ? { refresh_token: refreshToken } : {}),
    };
  }

  #endFamily(family: string): void {
    for (const given of [this.#access, this.#refresh]) {
      for (const [token, issued] of given) if (issued.family === family) given.delete(token);
    }
  }
}

const invalid = (message: string): OAuthRefusal => new OAuthRefusal('invalid_grant', message);

function checkResource(
  resource: string | undefined,
  params: Readonly<Record<string, string>>,
): void {
  if (params['resource'] === resource) return;
  throw new OAuthRefusal('invalid_target', 'The resource is not the one that was agreed to.');
}
