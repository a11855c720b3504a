import { requestJwtAuthorizationGrant } from '@modelcontextprotocol/client';
import type { LoginHandler } from '@patchbay/connection-pool';
import type { ServerAuthorization } from '@patchbay/protocols';

/** What the referee says about who the client is. */
export interface AuthorizationContext {
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly private_key_pem?: string;
  readonly signing_algorithm?: string;
  readonly idp_token_endpoint?: string;
  readonly idp_id_token?: string;
  readonly idp_client_id?: string;
  readonly idp_client_secret?: string;
  readonly valid_jwt?: string;
}

/** A user who agrees to everything: the referee's pages send a browser back at once. */
export const login: LoginHandler = {
  begin: () => ({
    redirectUrl: 'http://127.0.0.1:3000/callback',
    visit: async (address) => {
      const response = await fetch(address, { redirect: 'manual' });
      return response.headers.get('location') ?? address;
    },
  }),
};

/** What a person would have written into the configuration. */
export async function authOf(
  scenario: string,
  url: string,
  context: AuthorizationContext,
): Promise<ServerAuthorization | undefined> {
  const { client_id: clientId, client_secret: clientSecret } = context;
  if (!scenario.startsWith('auth/') || clientId === undefined) return undefined;
  const secret = {
    clientId,
    ...(clientSecret === undefined ? {} : { clientSecret }),
    issuer: await issuerOf(url),
  };
  switch (scenario) {
    case 'auth/client-credentials-basic':
      return { ...secret, grant: 'client' };
    case 'auth/client-credentials-jwt':
      return {
        ...secret,
        grant: 'client',
        privateKey: {
          pem: context.private_key_pem!,
          algorithm: context.signing_algorithm ?? 'ES256',
        },
      };
    case 'auth/wif-jwt-bearer':
      return { ...secret, grant: 'assertion', assertion: async () => context.valid_jwt! };
    case 'auth/enterprise-managed-authorization':
      return {
        ...secret,
        grant: 'assertion',
        assertion: async ({ issuer, resource, scope }) => {
          const { jwtAuthGrant } = await requestJwtAuthorizationGrant({
            tokenEndpoint: context.idp_token_endpoint!,
            audience: issuer,
            resource,
            idToken: context.idp_id_token!,
            clientId: context.idp_client_id!,
            ...(context.idp_client_secret === undefined
              ? {}
              : { clientSecret: context.idp_client_secret }),
            ...(scope === undefined ? {} : { scope }),
          });
          return jwtAuthGrant;
        },
      };
    default:
      return secret;
  }
}

/** Whom the credentials were made out for; a person knows that from where they got them. */
async function issuerOf(url: string): Promise<string> {
  const { origin, pathname } = new URL(url);
  for (const path of [pathname, '']) {
    const response = await fetch(`${origin}/.well-known/oauth-protected-resource${path}`);
    if (!response.ok) continue;
    const metadata = (await response.json()) as {
      readonly authorization_servers?: readonly string[];
    };
    if (metadata.authorization_servers?.[0] !== undefined) return metadata.authorization_servers[0];
  }
  return origin;
}
