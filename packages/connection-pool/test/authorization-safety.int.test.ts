import { once } from 'node:events';
import { createServer } from 'node:http';

import { ConnectionPool, type LoginHandler } from '@patchbay/connection-pool';
import { authorizationServer, scriptedServer } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';

import { GuardedFetch } from '../src/auth/guarded-fetch.ts';
import { startHttpCase } from './http-servers.ts';

const failure = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => expect.unreachable('should have failed'),
    (error: Error) => error,
  );

/** A login that remembers what it was asked to show, and goes no further. */
function opener() {
  const opened: unknown[][] = [];
  const login: LoginHandler = {
    begin: () => ({
      redirectUrl: 'http://127.0.0.1:1/callback',
      visit: async (...args) => {
        opened.push(args);
        throw new Error('nobody is there');
      },
    }),
  };
  return { opened, login };
}

/** A server that names whatever it likes, and counts what it is asked. */
async function hostile(metadata: (base: string) => object) {
  const seen: string[] = [];
  let base = '';
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    const json = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.url?.startsWith('/.well-known/oauth-protected-resource') === true)
      json(200, { resource: `${base}/mcp`, authorization_servers: [base] });
    else if (request.url?.startsWith('/.well-known/') === true)
      json(200, {
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        registration_endpoint: `${base}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        ...metadata(base),
      });
    else json(401, {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${(server.address() as { readonly port: number }).port}`;
  return {
    url: `${base}/mcp`,
    seen,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const DANGEROUS = [
  'file:///bin/sh',
  'javascript:alert(1)',
  'smb://h/x',
  'https://x" & calc',
  'http://203.0.113.5/a',
  'https://user:pw@x/',
  'vscode://open?x=\u001b[2J',
];

describe.concurrent('codex-37077: what is shown to a user', () => {
  it.each(DANGEROUS)('is never %s', async (address) => {
    await using server = await startHttpCase('codex-37077/server.mjs', { FIXTURE_AUTHZ: address });
    const { opened, login } = opener();
    await using pool = new ConnectionPool({ authorization: { login } });
    const error = await failure(pool.acquire({ url: server.url }));
    expect(error).toMatchObject({ code: 'authorization-failed' });
    expect(error.message).not.toMatch(/\p{Cc}/u);
    expect(opened).toEqual([]);
  });

  it.each(['https://login.example/a', 'http://127.0.0.1:9/a', 'https://x/$(touch MARK)'])(
    'may be %s, as one URL',
    async (address) => {
      await using server = await startHttpCase('codex-37077/server.mjs', {
        FIXTURE_AUTHZ: address,
      });
      const { opened, login } = opener();
      await using pool = new ConnectionPool({ authorization: { login } });
      expect(await failure(pool.acquire({ url: server.url }))).toMatchObject({
        code: 'authorization-failed',
      });
      expect(opened).toEqual([[expect.any(URL)]]);
      const [[shown]] = opened as [[URL]];
      expect(shown.href).toMatch(/^https?:\/\/[\w.:/$()%]+\?[\w=&%.-]+$/);
      expect(Object.fromEntries(shown.searchParams)).toMatchObject({
        code_challenge_method: 'S256',
        state: expect.any(String),
        redirect_uri: 'http://127.0.0.1:1/callback',
      });
    },
  );

  it.each(
    ['token_endpoint', 'registration_endpoint'].flatMap((endpoint) =>
      DANGEROUS.map((address) => [endpoint, address]),
    ),
  )('is nothing at all where the %s is %s', async (endpoint, address) => {
    await using server = await hostile(() => ({ [endpoint]: address }));
    const { opened, login } = opener();
    await using pool = new ConnectionPool({ authorization: { login } });
    const error = await failure(pool.acquire({ url: server.url }));
    expect(error).toMatchObject({ code: 'authorization-failed' });
    expect(error.message).not.toMatch(/\p{Cc}|pw@/u);
    expect(opened).toEqual([]);
    expect(server.seen.filter((line) => /register|token/.test(line))).toEqual([]);
  });
});

describe.concurrent('executor-1032: what a server names', () => {
  const hits = async (victim: { readonly url: string }) =>
    Number(await (await fetch(new URL('/__count', victim.url))).text());
  const named = (port: string) => [
    'http://169.254.169.254/',
    `http://[::1]:${port}/`,
    `http://127.0.0.1:${port}/`,
    `http://0x7f000001:${port}/`,
    'http://localtest.invalid/',
    `https://127.0.0.1:${port}/`,
    `https://localhost:${port}/`,
    `https://2130706433:${port}/`,
    `https://[::ffff:127.0.0.1]:${port}/`,
    'https://10.0.0.7/',
    'https://[fd00::1]/',
    'https://0.0.0.0/',
  ];

  it.each(['FIXTURE_PRM', 'FIXTURE_AS'])(
    'as %s is not asked, if it is inside of some network',
    async (variable) => {
      await using victim = await startHttpCase('executor-1032/victim.mjs');
      for (const target of named(new URL(victim.url).port)) {
        await using server = await startHttpCase('codex-37077/server.mjs', { [variable]: target });
        const { opened, login } = opener();
        await using pool = new ConnectionPool({ authorization: { login } });
        const asked: string[] = [];
        // To this program the server is one of the internet.
        const asPublic: typeof fetch = (input, init) => {
          const url = new URL(input instanceof Request ? input.url : input);
          asked.push(url.origin);
          if (url.hostname === 'mcp.example') url.protocol = 'http:';
          if (url.hostname === 'mcp.example') url.host = new URL(server.url).host;
          return fetch(url, init);
        };
        const config = { url: 'https://mcp.example/mcp', fetch: asPublic };
        expect(await failure(pool.acquire(config))).toMatchObject({ code: 'authorization-failed' });
        expect(opened).toEqual([]);
        expect([...new Set(asked)]).toEqual(['https://mcp.example']);
      }
      expect(await hits(victim)).toBe(0);
    },
  );

  it('is not followed to where it redirects', async () => {
    await using victim = await startHttpCase('executor-1032/victim.mjs');
    await using redirector = await startHttpCase('executor-1032/redirector.mjs', {
      FIXTURE_TARGET: victim.url,
    });
    for (const variable of ['FIXTURE_PRM', 'FIXTURE_AS']) {
      await using server = await startHttpCase('codex-37077/server.mjs', {
        [variable]: redirector.url,
      });
      await using pool = new ConnectionPool({ authorization: { login: opener().login } });
      expect(await failure(pool.acquire({ url: server.url }))).toMatchObject({
        code: 'authorization-failed',
      });
    }
    expect(await hits(victim)).toBe(0);
  });

  it('is looked at where a socket would go to, unless the program named it itself', async () => {
    await using victim = await startHttpCase('executor-1032/victim.mjs');
    const { port } = new URL(victim.url);
    const guard = (issuer?: string) =>
      new GuardedFetch({
        server: new URL('https://mcp.example/mcp'),
        issuer,
        fetch: globalThis.fetch,
        isOwnFetch: false,
        allowAddress: undefined,
        signal: new AbortController().signal,
      });
    for (const target of named(port).filter((one) => one.startsWith('https:'))) {
      const guarded = guard();
      await failure(guarded.fetch(target));
      expect(guarded.refusal).toMatchObject({ message: expect.stringContaining('allow') });
      // Nothing is guessed afterwards.
      expect(await failure(guarded.fetch('https://mcp.example/other'))).toBe(guarded.refusal);
      await guarded.close();
    }
    expect(await hits(victim)).toBe(0);
    // No TLS is spoken there, but it was connected to.
    const trusted = guard(`https://127.0.0.1:${port}`);
    await expect(trusted.fetch(`https://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed');
    expect(trusted.refusal).toBeUndefined();
  });

  it('first among its authorization servers is the only one that is asked', async () => {
    await using first = await authorizationServer({ misbehaviour: 'wrong-issuer' });
    await using second = await authorizationServer();
    await using server = await scriptedServer({
      transport: 'http',
      protection: { by: second, authorizationServers: [first.issuer, second.issuer] },
    });
    await using pool = new ConnectionPool({ authorization: { login: opener().login } });
    expect(await failure(pool.acquire(server.config))).toMatchObject({
      code: 'authorization-failed',
    });
    expect(first.requests.map(({ endpoint }) => endpoint)).toEqual(['metadata']);
    expect(second.requests).toEqual([]);
  });
});
