import { generateKeyPairSync } from 'node:crypto';

import {
  Client,
  ClientCredentialsProvider,
  PrivateKeyJwtProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  type OAuthClientProvider,
} from '@modelcontextprotocol/client';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import {
  authorizationServer,
  scriptedServer,
  type AuthorizationMisbehaviour,
  type AuthorizationServerOptions,
  type ProtectionMisbehaviour,
  type ScriptedServer,
  type ScriptedServerOptions,
} from '../src/index.ts';
import { UserProvider } from './user-provider.ts';

// The official client warns on stderr about each refused refresh.
beforeEach(() => void vi.spyOn(console, 'warn').mockImplementation(() => undefined));

const SCOPES = ['read', 'write'];
const SOMEBODY = {
  id: 'somebody',
  secret: 's:e/c r&t',
  redirectUris: ['http://127.0.0.1/callback'],
};

/** An authorization server, and a server that it guards. */
async function guarded(
  options: AuthorizationServerOptions = {},
  more: Omit<NonNullable<ScriptedServerOptions['protection']>, 'by'> = {},
) {
  const authorization = await authorizationServer({ scopes: SCOPES, ...options });
  const server = await scriptedServer({
    transport: 'http',
    era: 'modern',
    tools: [
      { name: 'read', onCall: (_, { grant }) => `${grant?.user} ${grant?.scopes.join(' ')}` },
      { name: 'write' },
    ],
    protection: { by: authorization, ...more },
  });
  const close = async () => {
    await server.close();
    await authorization.close();
  };
  return { authorization, server, [Symbol.asyncDispose]: close };
}

const urlOf = ({ config }: ScriptedServer) => new URL('url' in config ? config.url : '');

/** The official client, not connected yet. */
function client(server: ScriptedServer, authProvider: OAuthClientProvider) {
  const transport = new StreamableHTTPClientTransport(urlOf(server), { authProvider });
  const made = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' } },
  );
  return { transport, client: made, [Symbol.asyncDispose]: () => made.close() };
}

/** Connects as a user who is sent to the browser once. */
async function loggedIn(server: ScriptedServer, provider: UserProvider) {
  await using first = client(server, provider);
  await expect(first.client.connect(first.transport)).rejects.toThrow(UnauthorizedError);
  await first.transport.finishAuth(provider.callback);
  const second = client(server, provider);
  await second.client.connect(second.transport);
  return second;
}

const said = (text: string) => ({ content: [{ type: 'text', text }] });

describe('an authorization server', () => {
  it('lets a user in who registers, agrees, and whose token is renewed', async () => {
    await using both = await guarded({}, { scopes: ['read'] });
    const { authorization, server } = both;
    const provider = new UserProvider(authorization, { user: 'ann' });
    await using connection = await loggedIn(server, provider);
    const read = () => connection.client.callTool({ name: 'read' });
    expect(await read()).toMatchObject(said('ann read'));
    expect(server.refusals).toEqual([401]);

    authorization.expireTokens();
    expect(await read()).toMatchObject(said('ann read'));
    expect(server.refusals).toEqual([401, 401]);
    expect(authorization.tokenRequests('authorization_code')).toBe(1);
    expect(authorization.tokenRequests('refresh_token')).toBe(1);
    expect(authorization.tokenRequests()).toBe(2);

    authorization.revokeAll();
    await expect(read()).rejects.toThrow(UnauthorizedError);
    expect(provider.asked).toHaveLength(2);
    expect(authorization.requests.at(-2)).toMatchObject({ error: 'invalid_grant' });
    expect(authorization.requests.map(({ endpoint }) => endpoint)).toEqual([
      'metadata',
      'registration',
      'authorization',
      'token',
      'metadata',
      'token',
      'metadata',
      'token',
      'authorization',
    ]);
  });

  it('asks for what was asked of it: the resource, a proof, the scope', async () => {
    await using both = await guarded({}, { scopes: ['read'] });
    const { authorization, server } = both;
    await using _ = await loggedIn(server, new UserProvider(authorization));
    const resource = urlOf(server).href;
    const [asked, token] = authorization.requests.slice(-2);
    expect(asked?.params).toMatchObject({ resource, scope: 'read', code_challenge_method: 'S256' });
    expect(token?.params).toMatchObject({ resource, grant_type: 'authorization_code' });
  });

  it('knows a client by the document at its address, and one that is registered', async () => {
    const page = 'https://app.example/client.json';
    const document = { client_id: page, redirect_uris: ['http://127.0.0.1:9/callback'] };
    await using both = await guarded({
      registration: false,
      clients: [SOMEBODY],
      clientDocuments: { [page]: document },
    });
    const { authorization, server } = both;
    const byDocument = new UserProvider(authorization, { clientMetadataUrl: page });
    const registered = new UserProvider(authorization, {
      client: { client_id: SOMEBODY.id, client_secret: SOMEBODY.secret },
    });
    for (const provider of [byDocument, registered]) {
      await using connection = await loggedIn(server, provider);
      expect((await connection.client.listTools()).tools).toHaveLength(2);
    }
    const unknown = client(server, new UserProvider(authorization));
    await expect(unknown.client.connect(unknown.transport)).rejects.toThrow(/registration/);
    const ids = authorization.requests.map(({ params }) => params['client_id']);
    expect(new Set(ids)).toEqual(new Set([undefined, page, SOMEBODY.id]));
  });

  it('gives tokens to a client with a secret, or with a key', async () => {
    const keys = {
      ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
      RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    };
    await using both = await guarded({
      clients: [
        SOMEBODY,
        { id: 'ES256', publicKey: keys.ES256.publicKey.export({ format: 'jwk' }) },
        {
          id: 'RS256',
          publicKey: keys.RS256.publicKey.export({ format: 'pem', type: 'spki' }).toString(),
        },
      ],
    });
    const { authorization, server } = both;
    const expectedIssuer = authorization.issuer;
    const signing = (clientId: string, alg: keyof typeof keys) =>
      new PrivateKeyJwtProvider({
        clientId,
        privateKey: keys[alg].privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
        algorithm: alg,
        expectedIssuer,
      });
    const right = [
      new ClientCredentialsProvider({
        clientId: SOMEBODY.id,
        clientSecret: SOMEBODY.secret,
        expectedIssuer,
        scope: 'write',
      }),
      signing('ES256', 'ES256'),
      signing('RS256', 'RS256'),
    ];
    for (const provider of right) {
      await using connection = client(server, provider);
      await connection.client.connect(connection.transport);
      const scopes = provider === right[0] ? 'write' : '';
      expect(await connection.client.callTool({ name: 'read' })).toMatchObject(
        said(`undefined ${scopes}`),
      );
    }
    expect(authorization.tokenRequests('client_credentials')).toBe(3);
    const wrong = [
      new ClientCredentialsProvider({ clientId: SOMEBODY.id, clientSecret: 'x', expectedIssuer }),
      signing('ES256', 'RS256'),
      new ClientCredentialsProvider({ clientId: 'ES256', clientSecret: 'x', expectedIssuer }),
    ];
    for (const provider of wrong) {
      await using connection = client(server, provider);
      await expect(connection.client.connect(connection.transport)).rejects.toThrow();
      expect(authorization.requests.at(-1)).toMatchObject({ error: 'invalid_client' });
    }
  });

  it('gives more scopes when a tool needs them', async () => {
    await using both = await guarded({}, { scopes: ['read'], toolScopes: { write: ['write'] } });
    const { authorization, server } = both;
    const provider = new UserProvider(authorization);
    await using connection = await loggedIn(server, provider);
    const write = () => connection.client.callTool({ name: 'write' });
    await expect(write()).rejects.toThrow(UnauthorizedError);
    expect(server.refusals).toEqual([401, 403]);
    expect(server.executions('write')).toBe(0);
    await connection.transport.finishAuth(provider.callback);
    expect(await write()).toMatchObject(said('{}'));
    expect(provider.asked.map(({ searchParams }) => searchParams.get('scope'))).toEqual([
      'read',
      'read write',
    ]);
  });

  it('forgets tokens after their time, and is content with one refresh token if told so', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      await using both = await guarded({ lifetime: 60, rotation: false });
      const { authorization, server } = both;
      const provider = new UserProvider(authorization);
      await using connection = await loggedIn(server, provider);
      const {
        access_token: token,
        refresh_token: refresh,
        expires_in: seconds,
      } = provider.tokens() ?? {};
      expect(seconds).toBe(60);
      expect(authorization.grantOf(token ?? '')).toMatchObject({ resource: urlOf(server).href });
      vi.setSystemTime(Date.now() + 60_000);
      expect(authorization.grantOf(token ?? '')).toBeUndefined();
      await connection.client.callTool({ name: 'write' });
      expect(provider.tokens()?.refresh_token).toBe(refresh);
      expect(provider.tokens()?.access_token).not.toBe(token);
    } finally {
      vi.useRealTimers();
    }
  });

  it('ends everything of a consent when one of its refresh tokens is used twice', async () => {
    await using both = await guarded();
    const { authorization, server } = both;
    const provider = new UserProvider(authorization);
    await using _ = await loggedIn(server, provider);
    const { client_id: id = '', client_secret: secret = '' } = provider.clientInformation() ?? {};
    const refresh = async (token = '') => {
      const response = await fetch(`${authorization.issuer}/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'refresh_token',
          client_id: id,
          client_secret: secret,
          resource: urlOf(server).href,
          refresh_token: token,
        }),
      });
      return (await response.json()) as Record<string, string>;
    };
    const first = provider.tokens()?.refresh_token;
    const next = await refresh(first);
    expect(authorization.grantOf(next['access_token'] ?? '')).toBeDefined();
    expect(await refresh(first)).toMatchObject({ error: 'invalid_grant' });
    expect(authorization.grantOf(next['access_token'] ?? '')).toBeUndefined();
    expect(await refresh(next['refresh_token'])).toMatchObject({ error: 'invalid_grant' });
  });

  it('sends nobody to an address that the client did not name', async () => {
    await using authorization = await authorizationServer({ clients: [SOMEBODY] });
    const ask = (redirect: string) =>
      authorization.visit(
        `${authorization.issuer}/authorize?client_id=somebody&redirect_uri=${redirect}`,
      );
    await expect(ask('https://attacker.example/callback')).rejects.toThrow(/redirect_uri/);
    expect((await ask('http://127.0.0.1:5/callback')).searchParams.get('error')).toBe(
      'unsupported_response_type',
    );
  });
});

it('refuses what it cannot read', async () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = publicKey.export({ format: 'jwk' });
  await using authorization = await authorizationServer({
    clients: [{ id: 'signs', publicKey: key }],
  });
  const post = async (path: string, body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(authorization.issuer + path, { method: 'POST', body, headers });
    return [response.status, ((await response.json()) as Record<string, unknown>)['error']];
  };
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = (head: string, payload: string) =>
    new URLSearchParams({
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: `${head}.${payload}.c2ln`,
    }).toString();
  for (const body of ['', 'null', '[]', '{"redirect_uris": 7}', '{"redirect_uris": ["x"]}']) {
    const [status] = await post('/register', body);
    expect(status).toBe(body.includes('redirect') ? 400 : 201);
  }
  const wrong = [
    await post('/token', 'grant_type=client_credentials'),
    await post('/token', '', { authorization: 'Basic %%%' }),
    await post('/token', signed('!', '!')),
    await post('/token', signed(part({ alg: 'none' }), part({ sub: 'signs' }))),
    await post('/token', signed(part({ alg: 'PS256' }), part({ sub: 'signs' }))),
    await post('/token', signed(part({ alg: 'ES999' }), part({ sub: 'signs' }))),
    await post('/token', signed(part({ alg: 'ES256' }), part({ sub: 'nobody' }))),
  ];
  expect(new Set(wrong.map(String))).toEqual(new Set(['401,invalid_client']));
});

describe('an authorization server that misbehaves', () => {
  const LOGIN: Readonly<Record<string, RegExp>> = {
    'wrong-issuer': /issuer/i,
    'no-pkce': /code challenge|S256|PKCE/i,
    'script-as-login': /javascript/i,
    'refuses-registration': /regist/i,
    'wrong-state': /state/,
  } satisfies Partial<Record<AuthorizationMisbehaviour, RegExp>>;
  const CALLBACK: Readonly<Record<string, RegExp>> = {
    denies: /access_denied/,
    'wrong-iss': /iss/i,
    'no-iss': /iss/i,
    'insecure-token-endpoint': /secure|https/i,
    'token-fails': /server_error/,
    'token-error-as-success': /not valid/,
    'token-garbage': /JSON/,
  } satisfies Partial<Record<AuthorizationMisbehaviour, RegExp>>;

  it.each(Object.entries(LOGIN))('is not logged in at: %s', async (misbehaviour, why) => {
    await using both = await guarded({ misbehaviour: misbehaviour as AuthorizationMisbehaviour });
    const provider = new UserProvider(both.authorization);
    await using connection = client(both.server, provider);
    await expect(connection.client.connect(connection.transport)).rejects.toThrow(why);
    expect(both.authorization.tokenRequests()).toBe(0);
  });

  it.each(Object.entries(CALLBACK))('gives no token: %s', async (misbehaviour, why) => {
    await using both = await guarded({ misbehaviour: misbehaviour as AuthorizationMisbehaviour });
    const provider = new UserProvider(both.authorization);
    await using connection = client(both.server, provider);
    await expect(connection.client.connect(connection.transport)).rejects.toThrow(
      UnauthorizedError,
    );
    await expect(connection.transport.finishAuth(provider.callback)).rejects.toThrow(why);
    expect(provider.tokens()).toBeUndefined();
  });

  it('gives fewer scopes, nothing to renew with, or refuses to renew', async () => {
    await using both = await guarded({ misbehaviour: 'fewer-scopes' }, { scopes: ['read'] });
    const { authorization, server } = both;
    const ask = async (misbehaviour: AuthorizationMisbehaviour) => {
      authorization.misbehave(misbehaviour);
      const provider = new UserProvider(authorization);
      await using connection = client(server, provider);
      await connection.client.connect(connection.transport).catch(() => undefined);
      await connection.transport.finishAuth(provider.callback);
      return provider;
    };
    expect((await ask('fewer-scopes')).tokens()?.scope).toBe('');
    expect((await ask('no-refresh-token')).tokens()?.refresh_token).toBeUndefined();
    const renewing = await ask('refuses-refresh');
    authorization.expireTokens();
    await using connection = client(server, renewing);
    await expect(connection.client.connect(connection.transport)).rejects.toThrow(
      UnauthorizedError,
    );
    expect(authorization.tokenRequests('refresh_token')).toBe(1);
    expect(renewing.asked).toHaveLength(2);
  });

  it('leads to another origin, where the official client does not follow', async () => {
    await using both = await guarded({ misbehaviour: 'metadata-elsewhere' });
    const { authorization, server } = both;
    await using connection = client(server, new UserProvider(authorization));
    await connection.client.connect(connection.transport).catch(() => undefined);
    const endpoints = () => authorization.requests.map(({ endpoint }) => endpoint);
    expect(endpoints()).not.toContain('elsewhere');
    const metadata = await fetch(`${authorization.issuer}/.well-known/oauth-authorization-server`);
    expect(await metadata.json()).toMatchObject({ issuer: authorization.issuer });
    expect(endpoints()).toContain('elsewhere');
  });

  it('has no metadata, too much of it, or never answers', async () => {
    await using authorization = await authorizationServer({ misbehaviour: 'no-metadata' });
    const metadata = `${authorization.issuer}/.well-known/oauth-authorization-server`;
    expect((await fetch(metadata)).status).toBe(404);
    authorization.misbehave('huge-metadata');
    expect((await (await fetch(metadata)).text()).length).toBeGreaterThan(8_000_000);
    authorization.misbehave('silent');
    const waiting = fetch(metadata);
    waiting.catch(() => undefined);
    await expect.poll(() => authorization.requests.length).toBe(3);
    await authorization.close();
    await expect(waiting).rejects.toThrow();
  });
});

describe('a server with a protection', () => {
  it.each<readonly [ProtectionMisbehaviour, readonly number[]]>([
    ['refuses-every-token', [401, 401, 401]],
    ['wants-more', [401, 403]],
  ])('misbehaves: %s', async (misbehaviour, refusals) => {
    await using both = await guarded({}, { misbehaviour });
    const provider = new UserProvider(both.authorization);
    await using connection = client(both.server, provider);
    await expect(connection.client.connect(connection.transport)).rejects.toThrow(
      UnauthorizedError,
    );
    await connection.transport.finishAuth(provider.callback);
    await using again = client(both.server, provider);
    await expect(again.client.connect(again.transport)).rejects.toThrow();
    expect(both.server.refusals).toEqual(refusals);
    expect(both.server.requests).toEqual([]);
  });

  it('is found without a challenge, but not without metadata or with that of another', async () => {
    await using both = await guarded({}, { misbehaviour: 'no-challenge' });
    const { authorization, server } = both;
    await using _ = await loggedIn(server, new UserProvider(authorization));
    for (const misbehaviour of ['no-metadata', 'wrong-resource'] as const) {
      server.protect({ by: authorization, misbehaviour });
      await using connection = client(server, new UserProvider(authorization));
      await expect(connection.client.connect(connection.transport)).rejects.not.toThrow(
        UnauthorizedError,
      );
    }
  });

  it('names addresses of others, and moves to another authorization server', async () => {
    await using both = await guarded();
    await using other = await authorizationServer();
    const { authorization, server } = both;
    server.protect({ by: authorization, metadataUrl: `${other.issuer}/latest/meta-data` });
    await using first = client(server, new UserProvider(authorization));
    await expect(first.client.connect(first.transport)).rejects.toThrow();
    server.protect({ by: authorization, authorizationServers: [other.issuer] });
    await using second = client(server, new UserProvider(other));
    await expect(second.client.connect(second.transport)).rejects.toThrow(UnauthorizedError);
    expect(other.requests.map(({ endpoint }) => endpoint)).toContain('registration');
    server.protect({ by: other });
    await using third = await loggedIn(server, new UserProvider(other));
    expect((await third.client.listTools()).tools).toHaveLength(2);
    server.protect(undefined);
    expect((await third.client.listTools()).tools).toHaveLength(2);
  });

  it('is one over HTTP', async () => {
    await using authorization = await authorizationServer();
    await expect(scriptedServer({ protection: { by: authorization } })).rejects.toThrow(/HTTP/);
  });
});
