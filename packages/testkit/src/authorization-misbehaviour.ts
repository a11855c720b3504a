/** What goes wrong at an authorization server. */
export type AuthorizationMisbehaviour =
  /** It takes requests, and never answers. */
  | 'silent'
  /** Its metadata is not there. */
  | 'no-metadata'
  /** Its metadata redirects to another origin, where no client should follow. */
  | 'metadata-elsewhere'
  /** Its metadata is longer than anybody should read: 8 MB. */
  | 'huge-metadata'
  /** Its metadata is of another issuer. */
  | 'wrong-issuer'
  /** Its metadata does not say that it checks the proof of who asked (PKCE). */
  | 'no-pkce'
  /** Where the user would log in is a program to run: `javascript:…`. */
  | 'script-as-login'
  /** Secrets would be sent unencrypted over the network. */
  | 'insecure-token-endpoint'
  /** Clients cannot register, although the metadata says so. */
  | 'refuses-registration'
  /** The user says no. */
  | 'denies'
  /** The user comes back as if from another server. (RFC 9207) */
  | 'wrong-iss'
  /** The user comes back without `iss`, although the metadata promises it. */
  | 'no-iss'
  /** The user comes back with the `state` of another request. */
  | 'wrong-state'
  /** One scope less than was asked for. */
  | 'fewer-scopes'
  /** There is nothing to renew a token with. */
  | 'no-refresh-token'
  /** Refresh tokens are not accepted any more. */
  | 'refuses-refresh'
  /** Asked for a token it fails: status 500. */
  | 'token-fails'
  /** Asked for a token it says an error, with status 200. */
  | 'token-error-as-success'
  /** Asked for a token it answers something else. */
  | 'token-garbage';

type Metadata = Readonly<Record<string, unknown>>;

/** What each does to the metadata. */
export const METADATA_FAULTS: Readonly<Record<string, (honest: Metadata) => Metadata>> = {
  'huge-metadata': (honest) => ({ ...honest, service_documentation: ' '.repeat(8_000_000) }),
  'wrong-issuer': (honest) => ({ ...honest, issuer: 'http://127.0.0.1:1' }),
  'no-pkce': (honest) => ({ ...honest, code_challenge_methods_supported: ['plain'] }),
  'script-as-login': (honest) => ({ ...honest, authorization_endpoint: 'javascript:alert(1)' }),
  'insecure-token-endpoint': (honest) => ({ ...honest, token_endpoint: 'http://192.0.2.1/token' }),
} satisfies Partial<Record<AuthorizationMisbehaviour, (honest: Metadata) => Metadata>>;

/** What each does to the way back of the user. */
export const REDIRECT_FAULTS: Readonly<Record<string, (back: URLSearchParams) => void>> = {
  'wrong-iss': (back) => back.set('iss', 'https://somebody-else.invalid'),
  'no-iss': (back) => back.delete('iss'),
  'wrong-state': (back) => back.set('state', 'of-another-request'),
} satisfies Partial<Record<AuthorizationMisbehaviour, (back: URLSearchParams) => void>>;

/** What each answers who asks for a token. */
export const TOKEN_FAULTS: Readonly<
  Record<
    string,
    { readonly status: number; readonly body: object | string; readonly error: string }
  >
> = {
  'token-fails': { status: 500, body: { error: 'server_error' }, error: 'server_error' },
  'token-error-as-success': {
    status: 200,
    body: { error: 'invalid_grant', error_description: 'It is not valid.' },
    error: 'invalid_grant',
  },
  'token-garbage': { status: 200, body: '<html>Come back later</html>', error: 'garbage' },
} satisfies Partial<Record<AuthorizationMisbehaviour, object>>;
