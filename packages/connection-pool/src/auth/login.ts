import type { Identity } from '@patchbay/protocols';

/** Who has to log in, and where. */
export interface LoginRequest {
  /** The URL of the server that access is wanted to. */
  readonly server: string;
  /** What people call the server. */
  readonly label: string;
  /** Whose login it is. `undefined`: that of the program's own user. */
  readonly identity: Identity | undefined;
  /** The port that the browser has to come back to, where one was registered. */
  readonly callbackPort: number | undefined;
  /** Aborted when nobody waits for it any more. */
  readonly signal: AbortSignal;
}

/** One login under way. */
export interface Login {
  /** Where the browser comes back to. */
  readonly redirectUrl: string;
  /**
   * Shows a page of the authorization server to the user: the address is always https, or http on this machine. Resolves with
   * the whole address that the browser came back to.
   */
  visit(address: URL): Promise<URL | string>;
  /** Is always called, once it is over. */
  close?(): Promise<void> | void;
}

/**
 * How a user logs in: a callback of the program. It may refuse by throwing, an identity that it does not know, say, or none
 * at all where every user has one.
 */
export interface LoginHandler {
  begin(request: LoginRequest): Promise<Login> | Login;
}
