import {
  PatchbayError,
  toPatchbayError,
  type Identity,
  type ServerAuthorization,
} from '@patchbay/protocols';

import type { AllowAddress } from '../http/public-address.ts';
import { covers, union, type Challenge } from './challenge.ts';
import type { CredentialKey, CredentialStore } from './credential-store.ts';
import type { LoginHandler } from './login.ts';
import type { Dpop } from './renewal.ts';

/** What a connection needs to know to get access to one server for one asker. */
export interface AuthorizationOptions {
  readonly server: URL;
  /** For messages. */
  readonly label: string;
  readonly identity: Identity | undefined;
  readonly config: ServerAuthorization;
  /** Whether the program configured `auth`, or somebody can log in: then any 401 is about a token. */
  readonly isExpected: boolean;
  readonly login: LoginHandler | undefined;
  readonly store: CredentialStore;
  readonly clientName: string;
  readonly clientMetadataUrl: string | undefined;
  readonly isOwnFetch: boolean;
  readonly allowAddress: AllowAddress | undefined;
  /** In milliseconds since 1970. */
  readonly now: () => number;
  /** Aborted when nobody needs it any more. */
  readonly signal: AbortSignal;
}

/** As an authorization server gave them, with its `issuer`. */
export interface Tokens {
  readonly access_token: string;
  readonly token_type?: string | undefined;
  readonly refresh_token?: string | undefined;
  readonly scope?: string | undefined;
  readonly issuer?: string | undefined;
}

/** With what, and for whom, a token is renewed. */
export interface RenewOptions {
  /** How requests to the server are sent. */
  readonly fetch: typeof globalThis.fetch;
  /** Somebody waits for it, who may be asked to log in. */
  readonly isWaitedFor: boolean;
  /** When the request was sent that was refused: see {@link Authorization.tick}. */
  readonly asked: number;
}

/** Milliseconds. A login that failed is not asked for again at once: an agent may try without end. */
const LOGIN_PAUSE_MS = 30_000;
/** How many secrets are remembered, to be blacked out. */
const MAX_SECRETS = 32;
/** How much of what others say is put into a message, in characters. */
const MAX_SAID = 500;

/**
 * The access of one asker to one server, for all connections to it. There is one renewal at a time, whoever asks for it: it
 * is for the token that a refused request carried, so that a late refusal of an old token renews nothing.
 */
export class Authorization {
  readonly #options: AuthorizationOptions;
  readonly #secrets = new Set<string>();
  #loaded: Promise<void> | undefined;
  #tokens: Tokens | undefined;
  #running: { readonly end: Promise<void>; readonly challenge: Challenge } | undefined;
  #failed:
    | { readonly at: number; readonly challenge: Challenge; readonly error: unknown }
    | undefined;
  /** The scope that a login was made for last: what is not granted then will not be granted the next time. */
  #wanted: string | undefined;
  #noLoginUntil = 0;
  #clock = 0;
  /** Proves whose tokens are, where an authorization server wants that. */
  dpop: Dpop | undefined;

  constructor(options: AuthorizationOptions) {
    this.#options = options;
  }

  /** A moment in the order of requests and renewals. */
  tick(): number {
    return ++this.#clock;
  }

  /** Texts that nobody may see. */
  get secrets(): readonly string[] {
    const { clientSecret = '', privateKey } = this.#options.config;
    return [...this.#secrets, clientSecret, privateKey?.pem ?? ''];
  }

  keepSecret(secret: string | undefined): void {
    if (secret === undefined) return;
    this.#secrets.add(secret);
    const [oldest] = this.#secrets;
    if (this.#secrets.size > MAX_SECRETS && oldest !== undefined) this.#secrets.delete(oldest);
  }

  /** What to send. While a refused token is renewed, its successor is waited for. */
  async tokens(): Promise<Tokens | undefined> {
    this.#loaded ??= this.#load();
    await this.#loaded;
    const { end, challenge } = this.#running ?? {};
    if (challenge?.kind === 'token' && challenge.token === this.#tokens?.access_token)
      await end!.catch(() => undefined);
    return this.#tokens;
  }

  /** Whether a refusal is about a token of ours, and not about something else. */
  isFor(response: Response): boolean {
    const challenge = response.headers.get('www-authenticate') ?? '';
    return (
      this.#options.isExpected ||
      this.#tokens !== undefined ||
      /^\s*(?:bearer|dpop)\b/i.test(challenge)
    );
  }

  /**
   * Answers a challenge: when it is fulfilled, the request may be sent again.
   * @throws PatchbayError `authorization-required`, `authorization-failed`
   */
  async renew(challenge: Challenge, options: RenewOptions): Promise<void> {
    for (;;) {
      if (this.#isAnswered(challenge)) return;
      const failed = this.#failed;
      // Refused for the same reason, before it was known that there is no remedy.
      if (failed !== undefined && options.asked < failed.at && isSame(failed.challenge, challenge))
        throw failed.error;
      const running = this.#running;
      if (running === undefined) break;
      // One that fails has said why; whether that answers this challenge too is asked above.
      await running.end.catch(() => undefined);
    }
    const end = this.#renew(challenge, options);
    this.#running = { end, challenge };
    try {
      await end;
    } catch (error) {
      if (options.isWaitedFor) this.#failed = { at: this.tick(), challenge, error };
      throw error;
    } finally {
      this.#running = undefined;
    }
  }

  /** The error for a server that does not take the token that it was given a moment ago. */
  refusedAgain(): PatchbayError {
    return this.#error(
      'authorization-failed',
      'it refuses a token that was issued a moment ago. Is it meant for this server? Look at `auth`.',
      { details: { status: 401, neverRan: true } },
    );
  }

  /** The error for a server that wants more than can be had. */
  wantsMore(scope: string | undefined): PatchbayError {
    const what = scope === undefined ? '' : ` (${scope})`;
    return this.#error(
      'authorization-required',
      `what it was granted does not suffice${what}. Let somebody who may grant it log in.`,
      { details: { status: 403, neverRan: true, ...(scope === undefined ? {} : { scope }) } },
    );
  }

  async #load(): Promise<void> {
    try {
      const credentials = await this.#options.store.load(this.#key());
      this.#take(credentials?.tokens);
    } catch (error) {
      this.#loaded = undefined;
      throw this.#told(error);
    }
  }

  #key(): CredentialKey {
    const { server, identity, config } = this.#options;
    const { grant, clientId } = config;
    const client = [grant === 'user' ? undefined : grant, clientId].filter(Boolean).join(' ');
    return {
      server: server.href,
      ...(identity === undefined ? {} : { identity: identity.id }),
      ...(client === '' ? {} : { client }),
    };
  }

  #take(tokens: Readonly<Record<string, unknown>> | undefined): void {
    const isUsable = typeof tokens?.['access_token'] === 'string';
    this.#tokens = isUsable ? (tokens as unknown as Tokens) : undefined;
    this.keepSecret(this.#tokens?.access_token);
    this.keepSecret(this.#tokens?.refresh_token);
  }

  #isAnswered({ kind, token, scope }: Challenge): boolean {
    const has = this.#tokens;
    if (has === undefined || has.access_token === token) return false;
    return kind === 'token' || covers(has.scope, scope);
  }

  #renew(challenge: Challenge, how: RenewOptions): Promise<void> {
    const { store } = this.#options;
    const work = () => this.#renewAlone(challenge, how);
    return store.exclusively?.(this.#key(), work) ?? work();
  }

  async #renewAlone(challenge: Challenge, { fetch, isWaitedFor }: RenewOptions): Promise<void> {
    const options = this.#options;
    // Another program, or another pool of this one, may have done it.
    const saved = await options.store.load(this.#key());
    this.#take(saved?.tokens);
    if (this.#isAnswered(challenge)) return;
    const scope = union(
      this.#tokens?.scope,
      this.#wanted,
      options.config.scopes?.join(' '),
      challenge.scope,
    );
    if (challenge.kind === 'scope' && covers(this.#wanted, challenge.scope))
      throw this.wantsMore(challenge.scope);
    const { renew } = await import('./renewal.ts');
    let isLogin = false;
    try {
      const { tokens } = await renew({
        ...options,
        fetch,
        challenge,
        scope,
        key: this.#key(),
        saved,
        dpop: this.dpop,
        keepDpop: (dpop) => (this.dpop = dpop),
        keepSecret: (secret) => this.keepSecret(secret),
        begin: (request) => {
          const login = this.#loginFor(isWaitedFor);
          isLogin = true;
          return login.begin(request);
        },
      });
      this.#take(tokens);
      if (isLogin) this.#wanted = scope;
      this.#failed = undefined;
    } catch (thrown) {
      if (isLogin) this.#noLoginUntil = this.#options.now() + LOGIN_PAUSE_MS;
      throw this.#told(thrown);
    }
  }

  /** Who can be asked to log in now. */
  #loginFor(isWaitedFor: boolean): LoginHandler {
    const { login } = this.#options;
    const nobody = (why: string) => new PatchbayError('authorization-required', why);
    if (login === undefined)
      throw nobody(
        'somebody has to log in, and there is nobody to ask. Give the pool an `authorization` with a `login`, or the server credentials of the program itself (`auth`, `headers`).',
      );
    if (!isWaitedFor) throw nobody('somebody has to log in. The next call will ask for it.');
    if (this.#noLoginUntil > this.#options.now()) {
      const at = new Date(this.#noLoginUntil).toISOString();
      throw nobody(`a login failed a moment ago. It is asked for again after ${at}.`);
    }
    return login;
  }

  #told(thrown: unknown): PatchbayError {
    const error = toPatchbayError(thrown, 'authorization-failed');
    if (this.#options.signal.aborted) return error;
    const { code, details, cause = thrown } = error;
    const isRequired = code === 'authorization-required';
    return this.#error(
      isRequired ? 'authorization-required' : 'authorization-failed',
      said(error),
      {
        cause,
        details: { ...details, neverRan: true },
      },
    );
  }

  #error(
    code: 'authorization-required' | 'authorization-failed',
    why: string,
    more: { readonly cause?: unknown; readonly details: Readonly<Record<string, unknown>> },
  ): PatchbayError {
    const { label } = this.#options;
    return new PatchbayError(code, `There is no access to ${label}: ${why}`, more);
  }
}

/** In one line. What is wrong with a document is a list. */
function said({ message, cause }: PatchbayError): string {
  const { issues } = (cause ?? {}) as { readonly issues?: unknown };
  const faults = Array.isArray(issues) ? (issues as readonly Issue[]) : [];
  const listed = faults.map(({ path = [], message: what = '' }) => `${path.join('.')}: ${what}`);
  const text =
    faults.length === 0
      ? message
      : `what its authorization server says is malformed: ${listed.join('; ')}`;
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > MAX_SAID ? `${line.slice(0, MAX_SAID)} …` : line;
}

interface Issue {
  readonly path?: readonly PropertyKey[];
  readonly message?: string;
}

/** Whether a failure to answer one of them says that the other cannot be answered either. */
function isSame(one: Challenge, other: Challenge): boolean {
  if (one.kind !== other.kind || one.token !== other.token) return false;
  return one.kind === 'token' || covers(one.scope, other.scope);
}
