/** Whose credentials, and where they are good. */
export interface CredentialKey {
  /** The server's URL. */
  readonly server: string;
  /** Whose: the id of an identity. Absent: the program's own. */
  readonly identity?: string;
  /** As what, where the configuration says it: the kind of grant, if it is not a user's, and the id of the client. */
  readonly client?: string;
  /** The authorization server that gave them. Absent, when asked for: whichever gave some last. */
  readonly issuer?: string;
}

/**
 * What an authorization server gave. Keep both as they are, with fields that you do not know: they say which authorization
 * server they are from, and are sent to no other. They are secrets.
 */
export interface Credentials {
  readonly issuer: string;
  /** The client that the program registered as. */
  readonly client?: Readonly<Record<string, unknown>>;
  readonly tokens?: Readonly<Record<string, unknown>>;
}

/** Keeps credentials. Read before the first request of a connection, and whenever a token is refused. */
export interface CredentialStore {
  load(key: CredentialKey): Promise<Credentials | undefined>;
  save(key: CredentialKey, credentials: Credentials): Promise<void>;
  /**
   * Runs one at a time of those with the same key, in all programs that share the store: a refresh token is often good for
   * one use, and the second one ends everything. `work` may take as long as a login.
   */
  exclusively?<T>(key: CredentialKey, work: () => Promise<T>): Promise<T>;
}

/** Keeps credentials as long as the program runs. */
export function memoryCredentials(): CredentialStore {
  const byAsker = new Map<string, Map<string, Credentials>>();
  const working = new Map<string, Promise<unknown>>();
  const asker = ({ server, identity, client }: CredentialKey) =>
    JSON.stringify([server, identity ?? '', client ?? '']);
  return {
    load: async (key) => {
      const known = byAsker.get(asker(key));
      return key.issuer === undefined
        ? [...(known?.values() ?? [])].at(-1)
        : known?.get(key.issuer);
    },
    save: async (key, credentials) => {
      const known = byAsker.get(asker(key)) ?? new Map<string, Credentials>();
      // What was saved last is last.
      known.delete(credentials.issuer);
      byAsker.set(asker(key), known.set(credentials.issuer, credentials));
    },
    exclusively: async (key, work) => {
      const before = working.get(asker(key));
      const run = Promise.resolve(before)
        .catch(() => undefined)
        .then(work);
      working.set(asker(key), run);
      try {
        return await run;
      } finally {
        if (working.get(asker(key)) === run) working.delete(asker(key));
      }
    },
  };
}
