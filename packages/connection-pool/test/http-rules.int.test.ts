import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { brotliCompressSync, gzipSync } from 'node:zlib';

import { ConnectionPool, isPublicAddress, type PoolOptions } from '@patchbay/connection-pool';
import type { HttpServerConfig } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { textOf } from './case-server.ts';
import { startHttp } from './fixtures/raw-server.mjs';

const fast: PoolOptions = { backOff: { firstMs: 5, maxMs: 50 } };
const failure = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => expect.unreachable('should have failed'),
    (error: Error) => error,
  );

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly _meta?: object };
}

/** Listens until the test is over; remembers what it was asked. */
async function listen(answer: (req: IncomingMessage, res: ServerResponse, body: string) => void) {
  const seen: { readonly method: string; readonly headers: IncomingMessage['headers'] }[] = [];
  const server = createServer((req, res) => {
    // Every request has a socket of its own.
    res.shouldKeepAlive = false;
    seen.push({ method: req.method ?? '', headers: req.headers });
    let body = '';
    req.on('data', (chunk: Buffer) => (body += chunk.toString()));
    req.on('end', () => answer(req, res, body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { readonly port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    /** The same, as another origin. */
    alias: `http://localhost:${port}/mcp`,
    seen,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** An older server without sessions; `call` answers `tools/call` in its own way. */
function odd(call: (res: ServerResponse, message: Message, req: IncomingMessage) => void) {
  let calls = 0;
  const listening = listen((req, res, body) => {
    if (req.method !== 'POST') {
      res.writeHead(405).end();
      return;
    }
    const message = JSON.parse(body) as Message;
    const reply = (answer: object) =>
      res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer }));
    if (message.id === undefined) res.writeHead(202).end();
    else if (message.method === 'tools/call') {
      calls++;
      call(res, message, req);
    } else if (message.method === 'initialize')
      reply({
        result: {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'odd', version: '1' },
        },
      });
    else reply({ error: { code: -32_601, message: 'no such method' } });
  });
  return listening.then((server) => Object.assign(server, { calls: () => calls }));
}

async function connected(config: HttpServerConfig, options: PoolOptions = fast) {
  const pool = new ConnectionPool(options);
  const lease = await pool.acquire(config);
  return { pool, client: lease.value, [Symbol.asyncDispose]: () => pool.close() };
}

describe.concurrent('an answer to a call', () => {
  const json = { 'content-type': 'application/json' };
  const result = (id: unknown) =>
    JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'ok' }] } });

  it.each<[string, (res: ServerResponse, message: Message) => void]>([
    ['is only an acknowledgement', (res) => res.writeHead(202).end()],
    ['is for somebody else', (res) => res.writeHead(200, json).end(result(987_654))],
    ['is an empty list', (res) => res.writeHead(200, json).end('[]')],
    [
      'is cut where it looks like its end',
      (res, { id }) => res.writeHead(200, json).end(result(id).slice(0, 30)),
    ],
    [
      'is cut on its way',
      (res, { id }) => {
        res.writeHead(200, { ...json, 'content-length': 1_000 });
        res.write(result(id).slice(0, 30), () => res.socket?.destroy());
      },
    ],
    [
      'is a stream without an event',
      (res) => res.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
    ],
    ['is a reset', (res) => res.socket?.resetAndDestroy()],
  ])('that %s settles it at once; it may have run', async (_what, call) => {
    await using server = await odd(call);
    await using http = await connected({ url: server.url });
    expect(await failure(http.client.callTool('any', {}))).toMatchObject({
      code: 'outcome-unknown',
    });
    expect(server.calls()).toBe(1);
    expect(http.pool.inspect()).toMatchObject([{ state: 'ready' }]);
  });

  it.each([
    [301, true],
    [401, true],
    [403, true],
    [404, true],
    [405, true],
    [406, true],
    [413, true],
    [415, true],
    [429, true],
    [503, true],
    [400, undefined],
    [422, undefined],
  ])('of HTTP %s is a refusal (never ran: %s)', async (status, neverRan) => {
    await using server = await odd((res) => res.writeHead(status).end('no'));
    await using http = await connected({ url: server.url });
    const error = await failure(http.client.callTool('any', {}, { repeatable: true }));
    expect(error).toMatchObject({ code: 'protocol-error', details: { status } });
    expect((error as unknown as { details: object }).details).toHaveProperty(
      ...((neverRan === true ? ['neverRan', true] : ['status', status]) as [string, unknown]),
    );
    expect(server.calls()).toBe(1);
  });

  it.each([500, 502, 504])('of HTTP %s may have run, and is not repeated', async (status) => {
    await using server = await odd((res) => res.writeHead(status).end('oops'));
    await using http = await connected({ url: server.url, replay: 'always' });
    const call = http.client.callTool('any', {}, { repeatable: true });
    expect(await failure(call)).toMatchObject({ code: 'outcome-unknown', details: { status } });
    expect(server.calls()).toBe(1);
  });

  it.each(['json', 'sse', 'one of several events'])(
    'that is too long (%s) ends that call only, and says the limit',
    async (kind) => {
      const text = 'x'.repeat(3_000_000);
      const long = (id: unknown) =>
        JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } });
      await using server = await odd((res, { id, params }) => {
        if (params?.name === 'short' || kind === 'json') {
          res.writeHead(200, json).end(params?.name === 'short' ? result(id) : long(id));
          return;
        }
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        const step = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info' } };
        if (kind !== 'sse') res.write(`data: ${JSON.stringify(step)}\n\n`);
        res.end(`data: ${long(id)}\n\n`);
      });
      await using http = await connected({ url: server.url }, { ...fast, maxLineBytes: 1_000_000 });
      const [tooLong, short] = await Promise.all([
        failure(http.client.callTool('long', {})),
        http.client.callTool('short', {}),
      ]);
      expect(tooLong).toMatchObject({
        code: 'too-large',
        message: expect.stringContaining('1000000 bytes'),
      });
      expect(textOf(short)).toBe('ok');
      expect(http.pool.inspect()).toMatchObject([{ state: 'ready' }]);
    },
  );

  it('may be longer as a whole than one message of it', async () => {
    await using server = await odd((res, { id }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      const note = {
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { data: 'x'.repeat(400) },
      };
      for (let i = 0; i < 100; i++) res.write(`data: ${JSON.stringify(note)}\n\n`);
      res.end(`data: ${result(id)}\n\n`);
    });
    await using http = await connected({ url: server.url }, { ...fast, maxLineBytes: 4_000 });
    expect(textOf(await http.client.callTool('any', {}))).toBe('ok');
  });

  it.each([
    ['gzip', gzipSync, 'application/json'],
    ['br', brotliCompressSync, 'application/json'],
    ['gzip', gzipSync, 'text/event-stream'],
  ] as const)('may be packed (%s, %3$s); its limit is that of what is in it', async (...of) => {
    const [encoding, pack, type] = of;
    await using server = await odd((res, { id, params }) => {
      const text = params?.name === 'broken' ? '' : result(id);
      const padding = params?.name === 'long' ? ' '.repeat(1_000_000) : '';
      const body = type === 'application/json' ? padding + text : `data: ${padding}${text}\n\n`;
      res.writeHead(200, { 'content-type': type, 'content-encoding': encoding });
      res.end(params?.name === 'broken' ? 'not packed at all' : pack(body));
    });
    await using http = await connected({ url: server.url }, { ...fast, maxLineBytes: 4_000 });
    expect(textOf(await http.client.callTool('any', {}))).toBe('ok');
    expect(await failure(http.client.callTool('long', {}))).toMatchObject({ code: 'too-large' });
    expect(await failure(http.client.callTool('broken', {}))).toMatchObject({
      code: 'outcome-unknown',
    });
    expect(textOf(await http.client.callTool('any', {}))).toBe('ok');
  });
});

describe.concurrent('a redirect to another origin', () => {
  const headers = {
    authorization: 'Bearer s3cr3t-token',
    'x-api-key': 's3cr3t-key',
    cookie: 's3cr3t=1',
  };

  it.each([301, 302, 303, 307, 308])('is not followed by anything (%s)', async (status) => {
    await using target = await listen((_req, res) => res.writeHead(200).end());
    let moved = false;
    await using server = await odd((res) => res.writeHead(200).end());
    const real: typeof fetch = (input, init) => fetch(moved ? redirecting.url : input, init);
    await using redirecting = await listen((_req, res) =>
      res.writeHead(status, { location: target.alias }).end(),
    );
    const first = await failure(new ConnectionPool().acquire({ url: redirecting.url, headers }));
    expect(first).toMatchObject({
      code: 'connect-failed',
      message: expect.stringContaining('localhost'),
    });
    const old = { url: redirecting.url, headers, type: 'sse' } as const;
    expect(await failure(new ConnectionPool().acquire(old))).toMatchObject({
      code: 'connect-failed',
    });

    await using http = await connected({ url: server.url, headers, fetch: real });
    moved = true;
    expect(await failure(http.client.callTool('any', {}))).toMatchObject({
      code: 'protocol-error',
      message: expect.stringContaining('localhost'),
      details: { neverRan: true },
    });
    await http.pool.close();
    expect(redirecting.seen.length).toBeGreaterThan(2);
    expect(target.seen).toEqual([]);
  });

  it('is not followed by the stream of notifications, nor by the good-bye to a session', async () => {
    await using target = await listen((_req, res) => res.writeHead(200).end());
    const server = await startHttp({
      route: (req: IncomingMessage, res: ServerResponse) => {
        if (req.method === 'POST') return false;
        res.writeHead(307, { location: target.alias }).end();
        return true;
      },
    });
    const http = await connected({ url: server.url, headers });
    expect(textOf(await http.client.callTool('echo', { text: 'hi' }))).toBe('hi');
    await http.pool.close();
    await server.close();
    expect(target.seen).toEqual([]);
  });
});

describe.concurrent('where a server may be', () => {
  it('is asked with the address that a socket goes to, name or number', async () => {
    await using server = await odd((res) => res.writeHead(200).end());
    const asked: string[][] = [];
    const note = (address: string, host: string) => asked.push([host, address]) > 0;
    {
      await using http = await connected({ url: server.alias }, { ...fast, allowAddress: note });
      await using again = await connected({ url: server.url }, { ...fast, allowAddress: note });
      expect([http.client.info.name, again.client.info.name]).toEqual(['odd', 'odd']);
    }
    expect(new Set(asked.map(String))).toContain('localhost,127.0.0.1');
    expect(new Set(asked.map(String))).toContain('127.0.0.1,127.0.0.1');
  });

  it('is nowhere private with `isPublicAddress`; nothing is sent', async () => {
    await using server = await odd((res) => res.writeHead(200).end());
    const { port } = new URL(server.url);
    const hosts = [
      '127.0.0.1',
      'localhost',
      '0x7f000001',
      '2130706433',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '0.0.0.0',
      '169.254.169.254',
    ];
    for (const host of hosts) {
      for (const type of ['http', 'sse'] as const) {
        await using pool = new ConnectionPool({ ...fast, allowAddress: isPublicAddress });
        const error = await failure(pool.acquire({ url: `http://${host}:${port}/mcp`, type }));
        expect(error).toMatchObject({
          code: 'connect-failed',
          message: expect.stringContaining('allowAddress'),
        });
      }
    }
    expect(server.seen).toEqual([]);
    expect(['8.8.8.8', '2606:4700::1111'].map(isPublicAddress)).toEqual([true, true]);
    const special = [
      '10.0.0.1',
      '100.100.100.200',
      '192.168.1.1',
      'fd00:ec2::254',
      'fe80::1',
      '64:ff9b::7f00:1',
      'no address',
    ];
    expect(special.filter(isPublicAddress)).toEqual([]);
  });

  it('executor-1032: a name that means another address a moment later is not connected to', async () => {
    await using server = await odd((res, { id }) =>
      res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })),
    );
    let rebound = false;
    const allowAddress = () => !rebound;
    await using http = await connected({ url: server.alias }, { ...fast, allowAddress });
    await http.client.callTool('any', {});
    rebound = true;
    const error = await failure(http.client.callTool('any', {}));
    expect(error).toMatchObject({ code: 'connect-failed', details: { neverRan: true } });
    expect(server.calls()).toBe(1);
  });

  it('executor-1032: what a refusal names (metadata, authorization servers) is not fetched', async () => {
    await using victim = await listen((_req, res) => res.writeHead(200).end('{}'));
    await using server = await listen((_req, res) =>
      res
        .writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${victim.url}"` })
        .end(JSON.stringify({ authorization_servers: [victim.url] })),
    );
    for (const type of ['http', 'sse'] as const) {
      await using pool = new ConnectionPool(fast);
      expect(await failure(pool.acquire({ url: server.url, type }))).toMatchObject({
        code: 'authorization-required',
      });
    }
    expect(victim.seen).toEqual([]);
  });

  it('is not in a URL with a password', async () => {
    await using pool = new ConnectionPool(fast);
    const error = await failure(pool.acquire({ url: 'http://ann:s3cr3t-word@127.0.0.1:9/mcp' }));
    expect(error).toMatchObject({
      code: 'invalid-config',
      message: expect.stringContaining('headers'),
    });
    expect(inspect(error)).not.toContain('s3cr3t-word');
  });
});

describe.concurrent('a server that was replaced', () => {
  it.each([
    ['modern', 'legacy', {}],
    ['modern', 'legacy', { stateless: true }],
    ['legacy', 'modern', {}],
  ])('by one of the other era (%s by %s) is found again', async (before, after, more) => {
    const first = await startHttp({ era: before });
    await using http = await connected({ url: first.url });
    expect(textOf(await http.client.callTool('echo', { text: 'one' }))).toBe('one');
    await first.close();
    const second = await startHttp({ era: after, ...more, http: first.port });
    try {
      // A socket that was kept may break the first call; one without sessions answers it, in words of its own era.
      await http.client.callTool('echo', { text: 'two' }).catch(() => undefined);
      await vi.waitFor(async () => {
        expect(textOf(await http.client.callTool('echo', { text: 'three' }))).toBe('three');
        expect(http.client.info.era).toBe(after);
      }, 10_000);
    } finally {
      await http.pool.close();
      await second.close();
    }
  });

  it('in the middle of the handshake is no older one, and is found again', async () => {
    let expireAt = 0;
    const server = await startHttp({
      expired: 400,
      route: (_req: IncomingMessage, _res: ServerResponse, body: string) => {
        if (body.includes('notifications/initialized') && expireAt-- > 0) server.expire();
        return false;
      },
    });
    await using http = await connected({ url: server.url });
    expireAt = 1;
    server.expire();
    expect(textOf(await http.client.callTool('echo', { text: 'back' }))).toBe('back');
    expect(server.count.initialize).toBe(3);
    await http.pool.close();
    await server.close();
  });
});

describe.concurrent('a server that takes a request and says nothing', () => {
  it('is given up when connecting takes too long, over both transports', async () => {
    await using server = await listen(() => undefined);
    for (const type of ['http', 'sse'] as const) {
      await using pool = new ConnectionPool(fast);
      const config = { url: server.url, type, timeouts: { connectMs: 200 } };
      expect(await failure(pool.acquire(config))).toMatchObject({
        code: expect.stringMatching(/timeout|connect-failed/),
      });
      expect(pool.status(config)).toMatchObject({ state: 'degraded' });
    }
  });

  it('costs a call its time, and no other call anything', async () => {
    await using server = await odd((res, { id, params }) => {
      if (params?.name === 'mute') return;
      res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }));
    });
    await using http = await connected({ url: server.url });
    const mute = failure(http.client.callTool('mute', {}, { timeoutMs: 300 }));
    expect(await http.client.callTool('any', {})).toEqual({ content: [] });
    expect(await mute).toMatchObject({ code: 'timeout' });
    expect(await http.client.callTool('any', {})).toEqual({ content: [] });
  });
});

describe.concurrent('a stream that can be resumed', () => {
  it('and ends again and again is given up with the call, or when the pool is closed', async () => {
    const server = await startHttp({});
    const http = await connected({ url: server.url });
    const call = http.client.callTool('primed', { resume: 'end' }, { timeoutMs: 1_500 });
    expect(await failure(call)).toMatchObject({ code: 'timeout' });
    const { resumes = 0 } = server.count as { resumes?: number };
    expect(resumes).toBeGreaterThan(0);
    expect(resumes).toBeLessThan(5);
    await http.pool.close();
    await server.close();
  });

  it('leaves no timer behind, whatever wait the server wished for', async () => {
    const server = await startHttp({});
    const http = await connected({ url: server.url });
    const calls = Array.from({ length: 3 }, () =>
      http.client.callTool('primed', { retry: 600_000 }).catch((error: unknown) => error),
    );
    await vi.waitFor(() => expect(server.count.executed).toBe(3));
    await http.pool.close();
    for (const error of await Promise.all(calls)) expect(error).toMatchObject({ code: 'closed' });
    await server.close();
  });
});
