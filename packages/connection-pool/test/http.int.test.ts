import { ConnectionPool, type Clock, type PoolOptions } from '@patchbay/connection-pool';
import type { HttpServerConfig, McpClient } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { textOf } from './case-server.ts';
import { bundled } from './bundle.ts';
import { startHttp } from './fixtures/raw-server.mjs';
import { runProgram, startHttpCase, startOldSse } from './http-servers.ts';

const fast: PoolOptions = { backOff: { firstMs: 5, maxMs: 50 } };
type Raw = Awaited<ReturnType<typeof startHttp>>;

/** A misbehaving server in this process, and a client on it. */
async function rawHttp(options: Readonly<Record<string, unknown>> = {}, more: PoolOptions = fast) {
  const server: Raw = await startHttp(options);
  const pool = new ConnectionPool(more);
  const config: HttpServerConfig = { url: server.url };
  const lease = await pool.acquire(config);
  return {
    server,
    pool,
    config,
    client: lease.value,
    [Symbol.asyncDispose]: async () => {
      await lease.close();
      await pool.close();
      await server.close();
    },
  };
}
const echo = async (client: McpClient, text: string, repeatable = false) =>
  textOf(await client.callTool('echo', { text }, { repeatable }));

describe.concurrent.each(['legacy', 'modern'])('a call over HTTP (%s)', (era) => {
  it.each(['json', 'sse'])('is answered, as %s', async (kind) => {
    await using http = await rawHttp({ era, json: kind === 'json' });
    expect(http.client.info.era).toBe(era);
    expect(await echo(http.client, 'hi')).toBe('hi');
    expect((await http.client.listTools()).items.length).toBeGreaterThan(20);
  });

  it.each(['end', 'cut', 'drop'])(
    'that is lost (%s) is settled at once; the connection goes on',
    async (tool) => {
      await using http = await rawHttp({ era });
      await expect(http.client.callTool(tool, {})).rejects.toMatchObject({
        code: 'outcome-unknown',
      });
      expect(await echo(http.client, 'on')).toBe('on');
      expect(http.server.count.executed).toBe(2);
    },
  );

  it('that may be repeated is repeated once', async () => {
    await using http = await rawHttp({ era });
    await expect(http.client.callTool('drop', {}, { repeatable: true })).rejects.toMatchObject({
      code: 'outcome-unknown',
    });
    expect(http.server.count.executed).toBe(2);
  });

  it('is not repeated after a 5xx, whoever allows it', async () => {
    await using http = await rawHttp({ era });
    await expect(http.client.callTool('s500', {}, { repeatable: true })).rejects.toMatchObject({
      code: 'outcome-unknown',
      details: { status: 500 },
    });
    expect(http.server.count.executed).toBe(1);
  });

  it('says that a page is no answer, and where a redirect leads', async () => {
    await using http = await rawHttp({ era });
    await using other = await rawHttp();
    const posts = () => other.server.seen.filter(({ method }) => method === 'POST').length;
    const before = posts();
    await expect(http.client.callTool('html', {})).rejects.toMatchObject({
      code: 'protocol-error',
      message: expect.stringContaining('text/html'),
    });
    const to = other.server.url.replace('127.0.0.1', 'localhost');
    await expect(http.client.callTool('redirect', { to })).rejects.toMatchObject({
      code: 'protocol-error',
      message: expect.stringContaining('localhost'),
    });
    expect(posts()).toBe(before);
  });

  it('is settled by the death of the server', async () => {
    await using http = await rawHttp({ era });
    const call = http.client.callTool('never', {});
    const settled = call.catch((error: unknown) => error);
    await vi.waitFor(() => expect(http.server.count.executed).toBe(1));
    await http.server.close();
    expect(await settled).toMatchObject({ code: 'outcome-unknown' });
    await expect(http.client.callTool('echo', {})).rejects.toMatchObject({
      code: 'connect-failed',
    });
    expect(http.pool.status(http.config)).toMatchObject({ state: 'degraded' });
    await using back: Raw & AsyncDisposable = Object.assign(
      await startHttp({ era, http: http.server.port }),
      { [Symbol.asyncDispose]: () => back.close() },
    );
    await vi.waitFor(async () => expect(await echo(http.client, 'back')).toBe('back'));
  });

  it('tells the server when it is given up', async () => {
    await using http = await rawHttp({ era });
    const stop = new AbortController();
    const call = http.client.callTool('never', {}, { signal: stop.signal });
    const settled = call.catch((error: unknown) => error);
    await vi.waitFor(() => expect(http.server.count.executed).toBe(1));
    stop.abort(new Error('secret reason'));
    expect(await settled).toMatchObject({ code: 'aborted' });
    const { count } = http.server as { count: { cancelled: number; aborted?: number } };
    await vi.waitFor(() => expect(count.cancelled + (count.aborted ?? 0)).toBeGreaterThan(0));
  });
});

describe.concurrent('a stream that can be resumed', () => {
  it('is resumed, whatever delay the server wishes', async () => {
    await using http = await rawHttp();
    expect(textOf(await http.client.callTool('primed', { resume: 'answer' }))).toBe('after resume');
  });

  it('is given up when the server refuses', async () => {
    await using http = await rawHttp();
    await expect(http.client.callTool('primed', { resume: 'refuse' })).rejects.toMatchObject({
      code: 'outcome-unknown',
    });
  });
});

describe.concurrent('a session that the server forgot', () => {
  it.each([404, 400])(
    'is renewed once for a hundred calls (%s); each runs once; a running one is still answered',
    async (expired) => {
      await using http = await rawHttp({ expired, init: 'slow' });
      const slow = http.client.callTool('slow', { ms: 300 });
      await vi.waitFor(() => expect(http.server.count.executed).toBe(1));
      http.server.expire();
      const { generation } = http.client;
      const { initialize } = http.server.count;
      const texts = Array.from({ length: 100 }, (_, i) => `m${i}`);
      expect(await Promise.all(texts.map((text) => echo(http.client, text)))).toEqual(texts);
      expect(http.server.count).toMatchObject({ initialize: initialize + 1, executed: 101 });
      expect(textOf(await slow)).toBe('slow');
      expect(http.client.generation).toBeGreaterThan(generation);
      expect(http.pool.status(http.config)).toMatchObject({ state: 'ready' });
    },
  );

  it('is renewed for a list, too', async () => {
    await using http = await rawHttp();
    http.server.expire();
    expect((await http.client.listTools()).items.length).toBeGreaterThan(20);
  });
});

describe.concurrent('the stream of notifications', () => {
  it('brings changes', async () => {
    await using http = await rawHttp();
    const heard: string[] = [];
    http.client.onNotification((method) => void heard.push(method));
    await vi.waitFor(() => {
      http.server.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
      expect(heard).toContain('notifications/tools/list_changed');
    });
  });

  it('that was cut is opened again; whatever was missed is made up for', async () => {
    await using http = await rawHttp();
    const gets = () => http.server.seen.filter(({ method }) => method === 'GET').length;
    await vi.waitFor(() => expect(gets()).toBe(1));
    const heard: string[] = [];
    http.client.onNotification((method) => void heard.push(method));
    http.server.cutAll();
    await vi.waitFor(() => expect(heard).toEqual(['notifications/tools/list_changed']));
    expect(gets()).toBe(2);
    expect(http.pool.status(http.config)).toMatchObject({ state: 'ready' });
  });

  it('that is lost for good is told as a lost connection, and the next use hears again', async () => {
    await using http = await rawHttp({ lifeMs: 60_000 });
    const { port } = http.server;
    await vi.waitFor(() => expect(http.server.seen.at(-1)?.method).toBe('GET'));
    await http.server.close();
    await vi.waitFor(() => expect(http.pool.status(http.config)).toMatchObject({ state: 'lost' }), {
      timeout: 5_000,
    });
    const again: Raw = await startHttp({ http: port });
    try {
      expect(await echo(http.client, 'again')).toBe('again');
      const heard: string[] = [];
      http.client.onNotification((method) => void heard.push(method));
      await vi.waitFor(() => {
        again.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
        expect(heard).toContain('notifications/tools/list_changed');
      });
    } finally {
      await again.close();
    }
  });
});

describe.concurrent('a server that went away', () => {
  it('is asked for three times, at growing distances, then when its time has come', async () => {
    let now = Date.parse('2026-01-01T00:00:00Z');
    const waits: number[] = [];
    const clock: Clock = {
      now: () => now,
      wait: async (ms) => {
        waits.push(ms);
        now += ms;
      },
    };
    const server: Raw = await startHttp();
    let attempts = 0;
    const counting: typeof fetch = (input, init) => {
      attempts++;
      return fetch(input, init);
    };
    const config: HttpServerConfig = { url: server.url, fetch: counting };
    const random = () => 1;
    await using pool = new ConnectionPool({ clock, random });
    await using lease = await pool.acquire(config);
    await vi.waitFor(() => expect(server.seen.at(-1)?.method).toBe('GET'));
    await server.close();
    await vi.waitFor(() => expect(pool.status(config)).toMatchObject({ state: 'lost' }), 5_000);
    attempts = 0;
    await expect(echo(lease.value, 'gone')).rejects.toMatchObject({ code: 'connect-failed' });
    expect(waits).toEqual([1_000, 2_000]);
    expect(attempts).toBe(3);
    const retryAt = new Date(now + 4_000).toISOString();
    expect(pool.status(config)).toMatchObject({ state: 'degraded', retryAt });
    await expect(echo(lease.value, 'gone')).rejects.toMatchObject({ code: 'unavailable' });
    now += 3_999;
    await expect(echo(lease.value, 'gone')).rejects.toMatchObject({ code: 'unavailable' });
    expect(attempts).toBe(3);
    now += 1;
    await expect(echo(lease.value, 'gone')).rejects.toMatchObject({ code: 'connect-failed' });
    expect(attempts).toBe(4);
    expect(pool.status(config).retryAt).toBe(new Date(now + 8_000).toISOString());
    const back: Raw = await startHttp({ http: server.port });
    now += 8_000;
    expect(await echo(lease.value, 'back')).toBe('back');
    await pool.close();
    await back.close();
  });
});

describe.concurrent('connecting over HTTP', () => {
  it('says that credentials are refused', async () => {
    const server: Raw = await startHttp({ auth: 'right-token' });
    await using pool = new ConnectionPool(fast);
    const config = (token: string) => ({
      url: server.url,
      headers: { authorization: `Bearer ${token}` },
    });
    try {
      const error = (await pool.acquire(config('wrong-token')).catch((e: unknown) => e)) as Error;
      expect(error).toMatchObject({ code: 'connect-failed', details: { status: 401 } });
      expect(error.message).not.toContain('wrong-token');
      await using lease = await pool.acquire(config('right-token'));
      expect(await echo(lease.value, 'in')).toBe('in');
    } finally {
      await pool.close();
      await server.close();
    }
  });

  it('needs to know for whom, where headers depend on it', async () => {
    await using pool = new ConnectionPool();
    const headers = (identity: unknown) => ({ token: (identity as { token: string }).token });
    await expect(pool.acquire({ url: 'http://127.0.0.1:9', headers })).rejects.toMatchObject({
      code: 'identity-required',
    });
  });

  it.each(['ftp://x', 'nowhere', 'file:///etc/passwd'])('refuses the url %s', async (url) => {
    await using pool = new ConnectionPool();
    await expect(pool.acquire({ url })).rejects.toMatchObject({ code: 'invalid-config' });
  });

  it('goes back to the old transport where the server knows no other, and notices its end', async () => {
    await using server = await startOldSse();
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire({ url: server.url });
    expect(textOf(await lease.value.callTool('echo', { message: 'old' }))).toBe('Echo: old');
    const [operation, args] = ['trigger-long-running-operation', { duration: 20, steps: 200 }];
    let signs = 0;
    const call = lease.value.callTool(operation, args, { onProgress: () => void signs++ });
    const settled = call.catch((error: unknown) => error);
    await vi.waitFor(() => expect(signs).toBeGreaterThan(0));
    await server.kill();
    expect(await settled).toMatchObject({ code: 'outcome-unknown' });
    expect(pool.inspect()[0]).toMatchObject({ state: 'lost' });
    await expect(pool.acquire({ url: server.url, type: 'http' })).rejects.toMatchObject({
      code: 'connect-failed',
    });
  });
});

describe.concurrent('typescript-sdk-1708: a server that was restarted', () => {
  it('is told of a new session once; all calls succeed', async () => {
    await using server = await startHttpCase('typescript-sdk-1708/server.mjs');
    await using pool = new ConnectionPool(fast);
    const sent: { rpc: string; sid: string | null }[] = [];
    const recording: typeof fetch = async (input, init) => {
      const { method } = JSON.parse(typeof init?.body === 'string' ? init.body : '{}') as {
        method?: string;
      };
      const sid = new Headers(init?.headers).get('mcp-session-id');
      sent.push({ rpc: method ?? init?.method ?? '', sid });
      return fetch(input, init);
    };
    await using lease = await pool.acquire({ url: server.url, fetch: recording });
    const whoami = async () => textOf(await lease.value.callTool('whoami', {}));
    const before = await whoami();
    await server.restart();
    const [sentBefore, seenBefore] = [sent.length, (await server.stats()).requests.length];
    const answers = await Promise.all(Array.from({ length: 5 }, whoami));
    answers.push(await whoami());
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).not.toBe(before);
    const seen = (await server.stats()).requests.slice(seenBefore);
    const initialize = seen.filter(({ rpc }) => rpc === 'initialize');
    expect(initialize).toHaveLength(1);
    expect(initialize[0]?.sid).toBeUndefined();
    // In the order of sending: what left before may arrive later.
    const after = sent.slice(sentBefore);
    const renewed = after.slice(after.findIndex(({ rpc }) => rpc === 'initialize'));
    expect(renewed.map(({ sid }) => sid)).not.toContain(before.replace('session ', ''));
    expect(after.filter(({ rpc }) => rpc === 'tools/call').length).toBe(5 + 5 + 1);
  });

  it('that forgets every session is not asked again and again', async () => {
    await using server = await startHttpCase('typescript-sdk-1708/server.mjs', {
      FIXTURE_ALWAYS_404: '1',
    });
    await using pool = new ConnectionPool();
    await using lease = await pool.acquire({ url: server.url });
    await server.restart();
    const { length } = (await server.stats()).requests;
    const calls = Array.from({ length: 5 }, () => lease.value.callTool('whoami', {}));
    const settled = await Promise.allSettled(calls);
    settled.push(...(await Promise.allSettled([lease.value.callTool('whoami', {})])));
    expect(settled.map(({ status }) => status)).toEqual(Array(6).fill('rejected'));
    const after = (await server.stats()).requests.slice(length);
    expect(after.length).toBeLessThan(20);
    expect(after.filter(({ rpc }) => rpc === 'tools/call').length).toBeLessThanOrEqual(10);
  });
});

describe.concurrent('vercel-ai-16541: streams that are cut', () => {
  it('end no program, no connection, and no later call', async () => {
    await using server = await startHttpCase('vercel-ai-16541/server.mjs');
    using program = await bundled('cut-program.ts');
    const { stdout, stderr } = await runProgram(program.file, server.url);
    expect(stderr).toBe('');
    const { cuts, fine, state } = JSON.parse(stdout) as {
      cuts: { code: string; message: string }[];
      fine: string;
      state: string;
    };
    expect(cuts).toHaveLength(3);
    for (const { code, message } of cuts) {
      expect(code).toBe('outcome-unknown');
      expect(message).toContain('"streams"');
    }
    expect([fine, state]).toEqual(['fine', 'ready']);
    const gets = (await server.stats()).requests.filter(({ http }) => http === 'GET');
    const gaps = gets.slice(1).map(({ t }, i) => t! - gets[i]!.t!);
    expect(gaps.length).toBeGreaterThan(1);
    expect(Math.min(...gaps)).toBeGreaterThan(300);
  });
});

describe.concurrent('smg-43: whose session it is', () => {
  it('keeps credentials apart, follows new ones, and ends what used the old ones', async () => {
    await using server = await startHttpCase('smg-43/server.mjs');
    await using pool = new ConnectionPool(fast);
    const tokens = new Map([
      ['a', { authorization: 'Bearer token-of-a' }],
      ['b', { authorization: 'Bearer shared', 'x-api-key': 'key-of-b' }],
      ['c', { authorization: 'Bearer shared', 'x-api-key': 'key-of-c' }],
      ['d', { authorization: 'Bearer shared', 'x-api-key': 'key-of-c' }],
    ]);
    const config: HttpServerConfig = {
      url: server.url,
      headers: (identity) => tokens.get(identity!.id)!,
    };
    const who = async (id: string) => {
      await using lease = await pool.acquire(config, { identity: { id } });
      return JSON.parse(textOf(await lease.value.callTool('whoami', {}))) as {
        who: string;
        session: string;
      };
    };
    /** How many there are. None was used with the credentials of another; the first question of a client has none. */
    const sessions = async () => {
      const { sessions: count, requests } = await server.stats();
      const used = requests.map(({ mixup }) => (mixup as { session?: string }).session);
      expect(used.filter((session) => session !== undefined)).toEqual([]);
      return count;
    };
    const header = (id: string) => {
      const { authorization, 'x-api-key': key = '-' } = tokens.get(id)! as Record<string, string>;
      return `${authorization}|${key}|-|-`;
    };
    const ids = Array.from({ length: 100 }, (_, i) => 'abcd'[(i * 7) % 4]!);
    const answers = await Promise.all(ids.map(who));
    expect(answers).toEqual(ids.map((id) => ({ who: header(id), session: header(id) })));
    expect(await sessions()).toBe(4);

    tokens.set('a', { authorization: 'Bearer renewed' });
    expect((await who('a')).who).toBe('Bearer renewed|-|-|-');
    await vi.waitFor(async () => expect(await sessions()).toBe(4));
    expect(pool.inspect()).toHaveLength(4);

    const toolsOf = async (id: string) => {
      await using lease = await pool.acquire(config, { identity: { id } });
      return (await lease.value.listTools()).items.map(({ name }) => name).join();
    };
    const [ofB, ofC] = await Promise.all([toolsOf('b'), toolsOf('c')]);
    expect(ofB).toContain('key_of_b');
    expect(ofC).not.toContain('key_of_b');
    expect(JSON.stringify(pool.inspect())).not.toMatch(/token|key-of|renewed|Bearer/);
  });
});
