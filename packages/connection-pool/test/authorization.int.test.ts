import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';

import {
  ConnectionPool,
  type Credentials,
  type CredentialStore,
  type LoginHandler,
  type LoginRequest,
  type PoolOptions,
} from '@patchbay/connection-pool';
import { loopbackLogin, memoryCredentials } from '@patchbay/connection-pool/auth';
import type { HttpServerConfig, McpClient, PatchbayError } from '@patchbay/protocols';
import {
  authorizationServer,
  scriptedServer,
  type AuthorizationMisbehaviour,
  type AuthorizationServer,
  type AuthorizationServerOptions,
  type ProtectionMisbehaviour,
  type ScriptedServer,
} from '@patchbay/testkit';
import { describe, expect, it, vi } from 'vitest';

import { textOf } from './case-server.ts';

type Protection = Omit<NonNullable<Parameters<ScriptedServer['protect']>[0]>, 'by'>;

/** A server that lets in who has a token, and a user whose browser does what it is told. */
async function guarded(
  protection: Protection = {},
  options: AuthorizationServerOptions = {},
  era: 'legacy' | 'modern' = 'modern',
) {
  const authorization = await authorizationServer({ scopes: ['read', 'write'], ...options });
  const server = await scriptedServer({
    transport: 'http',
    era,
    tools: [
      { name: 'whoami', onCall: (_, { grant }) => `${grant?.user} ${grant?.scopes.join(' ')}` },
      { name: 'write' },
    ],
    protection: { by: authorization, ...protection },
  });
  const browser = browserOf(authorization);
  const close = async () => {
    await server.close();
    await authorization.close();
  };
  return {
    authorization,
    server,
    browser,
    config: server.config as HttpServerConfig,
    [Symbol.asyncDispose]: close,
  };
}

/** Visits what is opened, as the user that the request is for, and follows where it is led. */
function browserOf(authorization: AuthorizationServer) {
  const opened: URL[] = [];
  const login = loopbackLogin({
    open: async (address, { identity }) => {
      opened.push(address);
      const back = await authorization.visit(address, identity?.id ?? 'somebody');
      await (await fetch(back)).text();
    },
  });
  return { opened, login };
}

const poolOf = (
  { browser }: { readonly browser: ReturnType<typeof browserOf> },
  more: PoolOptions = {},
) => new ConnectionPool({ authorization: { login: browser.login }, ...more });
function later<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
const ann = { identity: { id: 'ann' } };
const whoami = async (client: McpClient) => textOf(await client.callTool('whoami', {}));
const failure = (promise: Promise<unknown>): Promise<Error & { readonly details: object }> =>
  promise.then(
    () => expect.unreachable('should have failed'),
    (error: Error & { readonly details: object }) => error,
  );

describe.concurrent.each(['legacy', 'modern'] as const)('a server that asks (%s)', (era) => {
  it('is used after one login, and after a renewal without another one', async () => {
    await using all = await guarded({}, {}, era);
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    expect(await whoami(lease.value)).toBe('ann ');
    expect(all.browser.opened).toHaveLength(1);
    all.authorization.expireTokens();
    expect(await whoami(lease.value)).toBe('ann ');
    expect(all.browser.opened).toHaveLength(1);
    expect(all.authorization.tokenRequests('refresh_token')).toBe(1);
  });

  it('answers 50 calls on an expired token after one refresh, without a browser', async () => {
    await using all = await guarded({}, { rotation: true }, era);
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    await whoami(lease.value);
    all.authorization.expireTokens();
    const calls = Array.from({ length: 50 }, () => whoami(lease.value));
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 50 }, () => 'ann '));
    expect(all.authorization.tokenRequests('refresh_token')).toBe(1);
    expect(all.browser.opened).toHaveLength(1);
    expect(all.server.executions('whoami')).toBe(51);
  });
});

describe.concurrent('a token', () => {
  it('is renewed once for two connections of one asker, and kept when they are closed for being idle', async () => {
    await using all = await guarded();
    await using pool = poolOf(all);
    const perSession = { ...all.config, sharing: 'session' } as const;
    const leases = await Promise.all(
      ['one', 'two'].map((session) => pool.acquire(perSession, { ...ann, scope: { session } })),
    );
    expect(all.browser.opened).toHaveLength(1);
    all.authorization.expireTokens();
    const calls = leases.flatMap(({ value }) => Array.from({ length: 20 }, () => whoami(value)));
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ann ']));
    expect(all.authorization.tokenRequests('refresh_token')).toBe(1);
    for (const lease of leases) await lease.close();
    pool.retire(perSession);
    expect(pool.inspect()).toEqual([]);
    await using again = await pool.acquire(perSession, { ...ann, scope: { session: 'three' } });
    expect(await whoami(again.value)).toBe('ann ');
    expect(all.browser.opened).toHaveLength(1);
  });

  it('of one identity is never used for another one', async () => {
    await using all = await guarded();
    await using pool = poolOf(all);
    const names = ['ann', 'bob', 'cid'];
    const leases = await Promise.all(
      names.map((id) => pool.acquire(all.config, { identity: { id } })),
    );
    const calls = Array.from({ length: 30 }, (_, i) => whoami(leases[i % 3]!.value));
    expect(await Promise.all(calls)).toEqual(
      Array.from({ length: 30 }, (_, i) => `${names[i % 3]} `),
    );
    expect(all.browser.opened).toHaveLength(3);
    all.authorization.expireTokens();
    expect(await Promise.all(leases.map(({ value }) => whoami(value)))).toEqual([
      'ann ',
      'bob ',
      'cid ',
    ]);
    expect(all.authorization.tokenRequests('refresh_token')).toBe(3);
  });

  it('that another program renewed is taken from the store, as it was put there', async () => {
    await using all = await guarded();
    const saved = new Map<string, Credentials>();
    const memory = memoryCredentials();
    const credentials: CredentialStore = {
      ...memory,
      load: async (key) => structuredClone(await memory.load(key)),
      save: async (key, value) => {
        saved.set(JSON.stringify(key), value);
        await memory.save(key, structuredClone(value));
      },
    };
    const { login } = all.browser;
    await using one = new ConnectionPool({ authorization: { login, credentials } });
    await using two = new ConnectionPool({ authorization: { login, credentials } });
    await using first = await one.acquire(all.config, ann);
    await using second = await two.acquire(all.config, ann);
    expect(all.browser.opened).toHaveLength(1);
    const { issuer } = all.authorization;
    const key = JSON.stringify({ server: all.config.url, identity: 'ann', issuer });
    expect([...saved.keys()]).toEqual([key]);
    expect(saved.get(key)).toMatchObject({ issuer, client: { issuer }, tokens: { issuer } });
    all.authorization.expireTokens();
    expect(await whoami(first.value)).toBe('ann ');
    expect(await whoami(second.value)).toBe('ann ');
    expect(all.authorization.tokenRequests('refresh_token')).toBe(1);
  });

  it('that allows too little is widened by a login, for what is missing and what there was', async () => {
    await using all = await guarded({ scopes: ['read'], toolScopes: { write: ['write'] } });
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    expect(await whoami(lease.value)).toBe('ann read');
    await lease.value.callTool('write', {});
    expect(await whoami(lease.value)).toBe('ann read write');
    expect(all.browser.opened.map(({ searchParams }) => searchParams.get('scope'))).toEqual([
      'read',
      'read write',
    ]);
    expect(all.server.executions('write')).toBe(1);
  });

  it('that is widened is not waited for by calls that it suffices for, nor used by one that was given up', async () => {
    await using all = await guarded({ scopes: ['read'], toolScopes: { write: ['write'] } });
    const pages: URL[] = [];
    const goOn = later<void>();
    const login: LoginHandler = {
      begin: () => ({
        redirectUrl: 'http://127.0.0.1:1/callback',
        visit: async (address) => {
          pages.push(address);
          if (pages.length > 1) await goOn.promise;
          return all.authorization.visit(address, 'ann');
        },
      }),
    };
    await using pool = new ConnectionPool({ authorization: { login } });
    await using lease = await pool.acquire(all.config, ann);
    const stop = new AbortController();
    const givenUp = failure(lease.value.callTool('write', {}, { signal: stop.signal }));
    const waiting = lease.value.callTool('write', {});
    await vi.waitUntil(() => pages.length > 1, { timeout: 5_000 });
    expect(await whoami(lease.value)).toBe('ann read');
    stop.abort();
    expect(await givenUp).toMatchObject({ code: 'aborted' });
    goOn.resolve();
    await waiting;
    expect(all.server.executions('write')).toBe(1);
    expect(pages).toHaveLength(2);
  });

  it('that is never enough is asked for three times at most, and not again by the next call', async () => {
    await using all = await guarded();
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    all.server.protect({ by: all.authorization, misbehaviour: 'wants-more' });
    expect(await failure(whoami(lease.value))).toMatchObject({
      code: 'authorization-required',
      details: { status: 403, neverRan: true },
    });
    expect(all.browser.opened.length).toBeLessThanOrEqual(3);
    const before = all.browser.opened.length;
    expect(await failure(whoami(lease.value))).toMatchObject({ code: 'authorization-required' });
    expect(all.browser.opened).toHaveLength(before);
    expect(all.server.executions('whoami')).toBe(0);
  });

  it('that was issued a moment ago and is refused is not renewed for ever', async () => {
    await using all = await guarded({ misbehaviour: 'refuses-every-token' });
    await using pool = poolOf(all);
    expect(await failure(pool.acquire(all.config, ann))).toMatchObject({
      code: 'authorization-failed',
      message: expect.stringContaining('issued a moment ago'),
    });
    expect(all.browser.opened).toHaveLength(1);
  });

  it('that cannot be refreshed any more is replaced by a login, whoever waits for it', async () => {
    await using all = await guarded();
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    all.authorization.revokeAll();
    const calls = await Promise.all(Array.from({ length: 20 }, () => whoami(lease.value)));
    expect(new Set(calls)).toEqual(new Set(['ann ']));
    expect(all.browser.opened).toHaveLength(2);
  });

  it('is not asked of the user because its authorization server has trouble', async () => {
    await using all = await guarded();
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    all.authorization.expireTokens();
    all.authorization.misbehave('token-fails');
    expect(await failure(whoami(lease.value))).toMatchObject({ code: 'authorization-failed' });
    all.authorization.misbehave(undefined);
    expect(await whoami(lease.value)).toBe('ann ');
    expect(all.browser.opened).toHaveLength(1);
  });

  it('is not shown to another authorization server when the server moves', async () => {
    await using all = await guarded();
    await using other = await authorizationServer({ scopes: ['read'] });
    const elsewhere = browserOf(other);
    await using pool = poolOf({
      browser: {
        ...all.browser,
        login: {
          begin: async (request) => {
            const [first, second] = [
              await all.browser.login.begin(request),
              await elsewhere.login.begin(request),
            ];
            const isFirst = all.browser.opened.length === 0;
            await (isFirst ? second : first).close?.();
            return isFirst ? first : second;
          },
        },
      },
    });
    await using lease = await pool.acquire(all.config, ann);
    all.server.protect({ by: other });
    expect(await whoami(lease.value)).toBe('ann ');
    expect(elsewhere.opened).toHaveLength(1);
    expect(other.tokenRequests('refresh_token')).toBe(0);
    expect(other.requests.map(({ endpoint }) => endpoint)).toContain('registration');
    // And back: what was granted there is still good, but has to be asked for.
    expect(all.authorization.tokenRequests('refresh_token')).toBe(0);
  });
});

describe.concurrent('a program is known to an authorization server', () => {
  const page = 'https://app.example/client.json';
  const redirect_uris = ['http://127.0.0.1/callback'];

  it('by its document, where that is understood', async () => {
    const clientDocuments = { [page]: { client_id: page, redirect_uris } };
    await using all = await guarded({}, { registration: false, clientDocuments });
    await using pool = new ConnectionPool({
      authorization: { login: all.browser.login, clientMetadataUrl: page },
    });
    await using lease = await pool.acquire(all.config, ann);
    expect(await whoami(lease.value)).toBe('ann ');
    expect(all.browser.opened[0]?.searchParams.get('client_id')).toBe(page);
  });

  it('by a registration, once for all its logins', async () => {
    await using all = await guarded();
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    all.authorization.revokeAll();
    await whoami(lease.value);
    const registrations = all.authorization.requests.filter(
      ({ endpoint }) => endpoint === 'registration',
    );
    expect(registrations.map(({ params }) => params)).toMatchObject([
      { client_name: 'patchbay', application_type: 'native', token_endpoint_auth_method: 'none' },
    ]);
    expect(all.browser.opened).toHaveLength(2);
  });

  it.each([
    ['without a secret', undefined],
    ['with a secret', 's3cr3t-of-the-client'],
  ])('as it was registered beforehand, %s', async (_what, secret) => {
    const client = {
      id: 'known',
      redirectUris: redirect_uris,
      ...(secret === undefined ? {} : { secret }),
    };
    await using all = await guarded({}, { registration: false, clients: [client] });
    await using pool = poolOf(all);
    const auth = {
      clientId: 'known',
      scopes: ['read'],
      ...(secret === undefined ? {} : { clientSecret: secret, issuer: all.authorization.issuer }),
    };
    await using lease = await pool.acquire({ ...all.config, auth }, ann);
    expect(await whoami(lease.value)).toBe('ann read');
    all.authorization.expireTokens();
    expect(await whoami(lease.value)).toBe('ann read');
    expect(all.browser.opened).toHaveLength(1);
  });

  it('as itself, with a secret', async () => {
    const clients = [{ id: 'robot', secret: 's3cr3t-of-the-robot' }];
    await using all = await guarded({ scopes: ['read'] }, { clients });
    await using pool = new ConnectionPool();
    const { issuer } = all.authorization;
    const auth = {
      grant: 'client',
      clientId: 'robot',
      clientSecret: clients[0]!.secret,
      issuer,
    } as const;
    await using lease = await pool.acquire({ ...all.config, auth });
    expect(await whoami(lease.value)).toBe('undefined read');
    all.authorization.expireTokens();
    const calls = await Promise.all(Array.from({ length: 50 }, () => whoami(lease.value)));
    expect(new Set(calls)).toEqual(new Set(['undefined read']));
    expect(all.authorization.tokenRequests('client_credentials')).toBe(2);
  });

  it.each([
    ['ES256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
    ['RS256', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ])('as itself, with a private key (%s)', async (algorithm, make) => {
    const { publicKey, privateKey } = make();
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const clients = [
      { id: 'robot', publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() },
    ];
    await using all = await guarded({}, { clients });
    await using pool = new ConnectionPool();
    const { issuer } = all.authorization;
    const auth = {
      grant: 'client',
      clientId: 'robot',
      privateKey: { pem, algorithm },
      issuer,
    } as const;
    await using lease = await pool.acquire({ ...all.config, auth });
    expect(await whoami(lease.value)).toBe('undefined ');
  });

  it('as itself, beside users of the same server, whose tokens are others', async () => {
    const clients = [{ id: 'robot', secret: 's3cr3t-of-the-robot' }];
    await using all = await guarded({}, { clients });
    await using pool = poolOf(all);
    const { issuer } = all.authorization;
    const auth = {
      grant: 'client',
      clientId: 'robot',
      clientSecret: clients[0]!.secret,
      issuer,
    } as const;
    await using robot = await pool.acquire({ ...all.config, auth });
    await using user = await pool.acquire(all.config);
    expect(await whoami(robot.value)).toBe('undefined ');
    expect(await whoami(user.value)).toBe('somebody ');
    const headers = { Authorization: 'Bearer own' };
    expect(await failure(pool.acquire({ ...all.config, auth, headers }))).toMatchObject({
      code: 'invalid-config',
    });
  });

  it('but shows its own credentials only to the issuer that they are for', async () => {
    const clients = [{ id: 'robot', secret: 's3cr3t-of-the-robot' }];
    await using all = await guarded({}, { clients });
    await using other = await authorizationServer({ clients });
    await using pool = new ConnectionPool();
    const credentials = {
      grant: 'client',
      clientId: 'robot',
      clientSecret: clients[0]!.secret,
    } as const;
    const auth = { ...credentials, issuer: other.issuer };
    const error = await failure(pool.acquire({ ...all.config, auth }));
    expect(error).toMatchObject({ code: 'authorization-failed' });
    expect(all.authorization.tokenRequests() + other.tokenRequests()).toBe(0);
    expect(await failure(pool.acquire({ ...all.config, auth: credentials }))).toMatchObject({
      code: 'invalid-config',
      message: expect.stringContaining('`issuer`'),
    });
  });
});

describe.concurrent('a login', () => {
  it('that nobody can be asked for is authorization-required, and says what to do', async () => {
    await using all = await guarded();
    await using pool = new ConnectionPool();
    const error = await failure(pool.acquire({ ...all.config, label: 'notes' }, ann));
    expect(error).toMatchObject({
      code: 'authorization-required',
      message: expect.stringMatching(/"notes".*Give the pool an `authorization`/),
      details: { neverRan: true },
    });
    expect(pool.inspect()).toMatchObject([
      { state: 'degraded', lastError: { code: 'authorization-required' } },
    ]);
    const asked = all.authorization.requests.map(({ endpoint }) => endpoint);
    expect(asked).not.toContain('registration');
  });

  it('proves who asked, for this server alone', async () => {
    await using all = await guarded({ scopes: ['read'] });
    await using pool = poolOf(all);
    await using _ = await pool.acquire(all.config, ann);
    const { searchParams } = all.browser.opened[0]!;
    expect(Object.fromEntries(searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      resource: all.config.url,
      scope: 'read',
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
      state: expect.stringMatching(/^.{36}$/),
    });
    const [token] = all.authorization.requests.filter(({ endpoint }) => endpoint === 'token');
    expect(token?.params).toMatchObject({
      resource: all.config.url,
      code_verifier: expect.any(String),
    });
  });

  it.each<[AuthorizationMisbehaviour, number]>([
    ['huge-metadata', 0],
    ['wrong-issuer', 0],
    ['no-pkce', 0],
    ['script-as-login', 0],
    ['insecure-token-endpoint', 0],
    ['refuses-registration', 0],
    ['denies', 1],
    ['wrong-iss', 1],
    ['no-iss', 1],
    ['wrong-state', 1],
    ['token-fails', 1],
    ['token-error-as-success', 1],
    ['token-garbage', 1],
  ])('at an authorization server with %s fails; pages shown: %s', async (misbehaviour, pages) => {
    await using all = await guarded({}, { misbehaviour });
    await using pool = poolOf(all);
    const error = await failure(pool.acquire(all.config, ann));
    expect(error).toMatchObject({ code: 'authorization-failed' });
    expect(error.message).toMatch(
      /^There is no access to http:\/\/127\.0\.0\.1:\d+: [^\n]{10,600}$/,
    );
    expect(all.browser.opened).toHaveLength(pages);
    if (/^(wrong|no)-(iss|state)/.test(misbehaviour))
      expect(all.authorization.tokenRequests()).toBe(0);
    // The user is not asked again at once, but later.
    await pool.close();
    expect(all.server.executions('whoami')).toBe(0);
  });

  it.each<AuthorizationMisbehaviour>(['no-metadata', 'metadata-elsewhere'])(
    'at an authorization server with %s goes where older ones have their pages, and nowhere else',
    async (misbehaviour) => {
      await using all = await guarded({}, { misbehaviour });
      await using pool = poolOf(all);
      await using lease = await pool.acquire(all.config, ann);
      expect(await whoami(lease.value)).toBe('ann ');
      expect(all.authorization.requests.map(({ endpoint }) => endpoint)).not.toContain('elsewhere');
    },
  );

  it.each<[ProtectionMisbehaviour, boolean]>([
    ['no-challenge', true],
    ['no-metadata', false],
    ['wrong-resource', false],
  ])('for a server with %s comes about: %s', async (misbehaviour, works) => {
    await using all = await guarded({ misbehaviour });
    await using pool = poolOf(all);
    const outcome = await pool.acquire(all.config, ann).then(
      async (lease) => [await whoami(lease.value)],
      (error: PatchbayError) => error.code,
    );
    expect(outcome).toEqual(works ? ['ann '] : 'authorization-failed');
    expect(all.browser.opened).toHaveLength(works ? 1 : 0);
  });

  it('grants what the user grants; what is missing is said, and not asked for again', async () => {
    await using all = await guarded(
      { scopes: ['read'], toolScopes: { write: ['write'] } },
      { misbehaviour: 'fewer-scopes' },
    );
    all.authorization.misbehave(undefined);
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    all.authorization.misbehave('fewer-scopes');
    const write = () => failure(lease.value.callTool('write', {}));
    expect(await write()).toMatchObject({
      code: 'authorization-required',
      message: expect.stringContaining('write'),
    });
    const { length } = all.browser.opened;
    await write();
    expect(all.browser.opened).toHaveLength(length);
    expect(await whoami(lease.value)).toBe('ann read');
  });

  it('that fails is the same failure for all who waited, and is not asked for again at once', async () => {
    await using all = await guarded();
    await using pool = poolOf(all);
    await using lease = await pool.acquire(all.config, ann);
    all.authorization.revokeAll();
    all.authorization.misbehave('denies');
    const errors = await Promise.all(
      Array.from({ length: 20 }, () => failure(whoami(lease.value))),
    );
    expect(new Set(errors.map(({ message }) => message)).size).toBe(1);
    expect(all.browser.opened).toHaveLength(2);
    all.authorization.misbehave(undefined);
    expect(await failure(whoami(lease.value))).toMatchObject({
      code: 'authorization-required',
      message: expect.stringContaining('It is asked for again after'),
    });
    expect(all.browser.opened).toHaveLength(2);
  });

  it('takes as long as the user needs: the time to connect does not run meanwhile', async () => {
    await using all = await guarded();
    const begun = later<URL>();
    const goOn = later<URL>();
    const login: LoginHandler = {
      begin: () => ({
        redirectUrl: 'http://127.0.0.1:1/callback',
        visit: async (address) => {
          begun.resolve(address);
          return goOn.promise;
        },
      }),
    };
    await using pool = new ConnectionPool({ authorization: { login } });
    const connecting = pool.acquire({ ...all.config, timeouts: { connectMs: 150 } }, ann);
    const back = await all.authorization.visit(await begun.promise, 'ann');
    const timer = setTimeout(() => goOn.resolve(back), 400);
    await using lease = await connecting;
    clearTimeout(timer);
    expect(await whoami(lease.value)).toBe('ann ');
  });

  it('is given up when the pool closes, and leaves nothing that listens', async () => {
    await using all = await guarded();
    const opened = later<URL>();
    const login = loopbackLogin({ open: (address) => opened.resolve(address) });
    const pool = new ConnectionPool({ authorization: { login } });
    const connecting = failure(pool.acquire(all.config, ann));
    const redirect = (await opened.promise).searchParams.get('redirect_uri')!;
    await pool.close();
    expect(await connecting).toMatchObject({ code: 'closed' });
    await expect(fetch(redirect)).rejects.toThrow('fetch failed');
  });

  it('is not asked for by what nobody waits for', async () => {
    await using all = await guarded({}, {}, 'legacy');
    await using pool = poolOf(all, { backOff: { firstMs: 5, maxMs: 20 } });
    await using lease = await pool.acquire(all.config, ann);
    await all.server.ask('ping');
    all.authorization.revokeAll();
    const before = all.server.refusals.length;
    all.server.die();
    // The stream of notifications is opened again by itself, and refused.
    await vi.waitUntil(() => all.server.refusals.length > before, { timeout: 5_000 });
    expect(all.browser.opened).toHaveLength(1);
    expect(await whoami(lease.value)).toBe('ann ');
    expect(all.browser.opened).toHaveLength(2);
  });
});

describe.concurrent('a loopback login', () => {
  const request = (more: Partial<LoginRequest> = {}): LoginRequest => ({
    server: 'https://server.example/mcp',
    label: 'server',
    identity: undefined,
    callbackPort: undefined,
    signal: new AbortController().signal,
    ...more,
  });

  it('listens on this machine only, answers one page, and ends with the login', async () => {
    const login = await loopbackLogin({ open: () => undefined }).begin(request());
    const visited = login.visit(new URL('https://login.example'));
    expect(login.redirectUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    expect((await fetch(new URL('/other', login.redirectUrl))).status).toBe(404);
    const page = await fetch(`${login.redirectUrl}?code=s3cr3t&state=x`);
    expect(await page.text()).not.toContain('s3cr3t');
    expect(String(await visited)).toBe(`${login.redirectUrl}?code=s3cr3t&state=x`);
    await login.close?.();
    await expect(fetch(login.redirectUrl)).rejects.toThrow('fetch failed');
  });

  it('ends when time is up, or nobody waits for it, or no browser could be started', async () => {
    const late = await loopbackLogin({ open: () => undefined, timeoutMs: 20 }).begin(request());
    expect(await failure(Promise.resolve(late.visit(new URL('https://a.example'))))).toMatchObject({
      code: 'authorization-required',
    });
    const stop = new AbortController();
    const left = await loopbackLogin({ open: () => stop.abort(new Error('gone')) }).begin(
      request({ signal: stop.signal }),
    );
    expect(await failure(left.visit(new URL('https://a.example')) as Promise<URL>)).toMatchObject({
      message: 'gone',
    });
    const none = await loopbackLogin({
      open: () => {
        throw new Error('no browser');
      },
    }).begin(request());
    expect(await failure(none.visit(new URL('https://a.example')) as Promise<URL>)).toMatchObject({
      message: 'no browser',
    });
    for (const login of [late, left, none]) await login.close?.();
  });

  it('comes back to the port that was registered, and says so if that is taken', async () => {
    const first = await loopbackLogin({ open: () => undefined }).begin(request());
    const callbackPort = Number(new URL(first.redirectUrl).port);
    const second = loopbackLogin({ open: () => undefined });
    expect(await failure(Promise.resolve(second.begin(request({ callbackPort }))))).toMatchObject({
      code: 'authorization-failed',
      message: expect.stringContaining(String(callbackPort)),
    });
    await first.close?.();
    const third = await second.begin(request({ callbackPort }));
    expect(third.redirectUrl).toBe(first.redirectUrl);
    await third.close?.();
  });
});

describe('secrets', () => {
  it('are in no error, no status and no log, whatever a server answers', async () => {
    const clients = [{ id: 'robot', secret: 's3cr3t-of-the-robot' }];
    await using all = await guarded({}, { clients });
    const seen: string[] = [];
    await using pool = poolOf(all, {
      onProblem: (problem) => seen.push(inspect(problem, { depth: 9 })),
    });
    const log = vi
      .spyOn(console, 'warn')
      .mockImplementation((...said) => void seen.push(inspect(said)));
    using _ = { [Symbol.dispose]: () => log.mockRestore() };
    const { issuer } = all.authorization;
    const auth = {
      grant: 'client',
      clientId: 'robot',
      clientSecret: clients[0]!.secret,
      issuer,
    } as const;
    const tokens: string[] = [];
    const echoing: typeof fetch = async (input, init) => {
      const token = new Headers(init?.headers).get('authorization');
      if (token !== null) tokens.push(token.replace(/^\w+ /, ''));
      const response = await fetch(input, init);
      if (!JSON.stringify(init?.body ?? '').includes('whoami')) return response;
      return new Response(`you sent ${token}`, { status: 418 });
    };
    for (const config of [
      { ...all.config, auth, fetch: echoing },
      { ...all.config, fetch: echoing },
    ]) {
      await using lease = await pool.acquire(config, ann);
      const error = await failure(whoami(lease.value));
      expect(error.message).toContain('you sent Bearer ***');
      seen.push(inspect(error, { depth: 9 }), inspect(pool.inspect(), { depth: 9 }));
    }
    all.authorization.revokeAll();
    all.authorization.misbehave('token-error-as-success');
    expect(tokens.length).toBeGreaterThan(1);
    for (const secret of [clients[0]!.secret, ...tokens])
      expect(seen.join('\n')).not.toContain(secret);
    expect(log).not.toHaveBeenCalled();
  });
});

it('The old transport of HTTP gets in too', async () => {
  await using authorization = await authorizationServer();
  const { opened, login } = browserOf(authorization);
  let stream: ServerResponse | undefined;
  const old = createServer((request, response) => {
    const url = `http://${request.headers.host}`;
    if (request.url?.startsWith('/.well-known/') === true) {
      response.writeHead(200, { 'content-type': 'application/json' });
      const metadata = { resource: `${url}/sse`, authorization_servers: [authorization.issuer] };
      response.end(JSON.stringify(metadata));
    } else if (authorization.grantOf(request.headers.authorization?.slice(7) ?? '') === undefined) {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
    } else if (request.method === 'GET') {
      stream = response.writeHead(200, { 'content-type': 'text/event-stream' });
      stream.write('event: endpoint\ndata: /post\n\n');
    } else {
      void text(request).then((body) => {
        response.writeHead(202).end();
        const { id, method } = JSON.parse(body) as {
          readonly id?: number;
          readonly method: string;
        };
        const result = {
          protocolVersion: '2024-11-05',
          capabilities: {},
          serverInfo: { name: 'old', version: '1' },
        };
        const answer =
          method === 'initialize' ? { result } : { error: { code: -32_601, message: 'no' } };
        if (id !== undefined)
          stream?.write(
            `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n\n`,
          );
      });
    }
  }).listen(0, '127.0.0.1');
  await once(old, 'listening');
  const { port } = old.address() as { readonly port: number };
  const pool = new ConnectionPool({ authorization: { login } });
  const lease = await pool.acquire({ type: 'sse', url: `http://127.0.0.1:${port}/sse` });
  expect(lease.value.info.name).toBe('old');
  expect(opened).toHaveLength(1);
  await pool.close();
  old.closeAllConnections();
  old.close();
});
