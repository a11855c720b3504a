/**
 * How a server over HTTP lets us in, where it asks for that. (MCP "Authorization", OAuth 2.1) Nothing is needed for a server
 * that a user logs in to and that takes clients it does not know.
 */
export interface ServerAuthorization {
  /**
   * On whose behalf: of a `user` (default), who logs in once; of the program itself, a `client` with a secret or a key; of
   * whoever an `assertion` names.
   */
  readonly grant?: 'user' | 'client' | 'assertion';
  /** As the authorization server knows the program. Without it the program shows its document, or registers itself. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** Instead of a secret: a private key in PEM, and how it signs. (RFC 7523) Default: `ES256`. */
  readonly privateKey?: { readonly pem: string; readonly algorithm?: string };
  /** What is asked for, beside what the server wants. */
  readonly scopes?: readonly string[];
  /**
   * The authorization server that the program trusts with this: its `issuer`. Needed wherever nobody sees whom a secret goes
   * to (`client`, `assertion`), and for an authorization server inside of a private network.
   */
  readonly issuer?: string;
  /** Makes a signed token (JWT) that says for whom access is asked. (RFC 7523 section 2.1) */
  readonly assertion?: (request: AssertionRequest) => Promise<string>;
  /** The port that a browser comes back to on this machine, where one was registered. Default: any. */
  readonly callbackPort?: number;
}

/** What an assertion is for. */
export interface AssertionRequest {
  /** The authorization server that will read it. */
  readonly issuer: string;
  /** The server that access is wanted to. */
  readonly resource: string;
  /** Separated by spaces. */
  readonly scope?: string;
}
