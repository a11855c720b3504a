import { getEventListeners } from 'node:events';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import type { Problem } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { caseFile, caseServer, isAlive, textOf } from './case-server.ts';
import { startHttpCase } from './http-servers.ts';

const fast: PoolOptions = { backOff: { firstMs: 1, maxMs: 20 } };
const failure = (promise: Promise<unknown>): Promise<Error & { code?: string }> =>
  promise.then(
    () => expect.unreachable('should have failed'),
    (error: Error) => error,
  );

describe.concurrent('openai-agents-js-1530: a caller who gives up', () => {
  const reason = new Error('user alice cancelled; key=sk-test');

  it('gets its own reason at once; the server gets a cancellation without it', async () => {
    using server = caseServer('openai-agents-js-1530/server.mjs');
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(server.config);
    const stop = new AbortController();
    const call = failure(lease.value.callTool('slow', {}, { signal: stop.signal }));
    await vi.waitFor(() => expect(server.logged('call')).toHaveLength(1));
    stop.abort(reason);
    expect(await call).toMatchObject({ code: 'aborted', cause: reason });
    await vi.waitFor(() => expect(server.logged('cancelled')).toHaveLength(1));
    const [cancelled] = server.logged('cancelled');
    expect(cancelled?.['requestId']).toBe(server.logged('call')[0]?.['id']);
    expect(JSON.stringify(server.log())).not.toMatch(/alice|sk-test/);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    expect(textOf(await lease.value.callTool('fast', {}))).toBe('fast');
  });

  it('before the call: nothing reaches the server', async () => {
    using server = caseServer('openai-agents-js-1530/server.mjs');
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(server.config);
    const signal = AbortSignal.abort(reason);
    expect(await failure(lease.value.callTool('slow', {}, { signal }))).toMatchObject({
      code: 'aborted',
      cause: reason,
    });
    await lease.value.callTool('fast', {});
    expect(server.logged('call').map(({ name }) => name)).toEqual(['fast']);
  });

  it('when the answer is there: one of both counts, and nothing is left', async () => {
    using server = caseServer('openai-agents-js-1530/server.mjs');
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(server.config);
    const stop = new AbortController();
    const result = await lease.value.callTool('fast', {}, { signal: stop.signal });
    stop.abort(reason);
    expect(textOf(result)).toBe('fast');
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    expect(textOf(await lease.value.callTool('fast', {}))).toBe('fast');
    expect(server.logged('cancelled')).toEqual([]);
  });
});

describe.concurrent('opencode-32477: signs of life', () => {
  it('extend the call that they are about, and no other', async () => {
    using server = caseServer('opencode-32477/server.mjs');
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(server.config);
    const [long, silent] = await Promise.all([
      lease.value.callTool('long', {}, { timeoutMs: 2_000 }),
      failure(lease.value.callTool('silent', {}, { timeoutMs: 2_000 })),
    ]);
    expect(textOf(long)).toBe('long done');
    expect(silent).toMatchObject({ code: 'timeout' });
    const tokens = server.logged('call').map(({ token }) => token);
    expect(tokens).not.toContain(undefined);
    expect(new Set(tokens).size).toBe(2);
  });
});

describe.concurrent('claude-ai-mcp-539: two hundred calls at once', () => {
  const callAll = async (
    pool: ConnectionPool,
    config: Parameters<ConnectionPool['acquire']>[0],
  ) => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        await using lease = await pool.acquire(config, { scope: { session: `s${n % 4}` } });
        return textOf(await lease.value.callTool('echo', { n }));
      }),
    );
    expect(answers).toEqual(Array.from({ length: 200 }, (_, n) => String(n)));
    expect(pool.inspect()).toHaveLength(1);
  };

  it('over one process', async () => {
    using server = caseServer('claude-ai-mcp-539/server.mjs');
    await using pool = new ConnectionPool(fast);
    await callAll(pool, server.config);
    expect(server.logged('duplicate-id')).toEqual([]);
  });

  it('over one session of HTTP', async () => {
    await using server = await startHttpCase('claude-ai-mcp-539/server-http.mjs');
    await using pool = new ConnectionPool(fast);
    await callAll(pool, { url: server.url });
    expect(await server.stats()).toEqual({ requests: [] });
  });
});

describe.concurrent('uxc-210: a server that says why it cannot start', () => {
  it('is told with exit code and stderr, without secrets', async () => {
    using server = caseServer('uxc-210/server.mjs', { API_TOKEN: 'tok-0123456789' });
    await using pool = new ConnectionPool();
    const error = await failure(pool.acquire(server.config));
    expect(error).toMatchObject({ code: 'connect-failed', details: { exitCode: 3 } });
    expect(error.message).toContain(
      'FATAL: cannot open database /nonexistent/db.sqlite (token=***)',
    );
    expect(error.message).toContain('code 3');
    expect(JSON.stringify([error, pool.inspect()])).not.toContain('tok-0123456789');
  });
});

describe.concurrent('claude-code-35287: one server of three is silent', () => {
  it('holds up nobody else, and is told apart from one that is not there', async () => {
    using silent = caseServer('claude-code-35287/silent.mjs');
    using slow = caseServer('claude-code-35287/slow-ok.mjs');
    await using pool = new ConnectionPool();
    const config = { ...silent.config, timeouts: { connectMs: 1_500 } };
    const never = failure(pool.acquire(config));
    await vi.waitFor(() => expect(silent.logged('start')).toHaveLength(1));
    expect(pool.status(config)).toMatchObject({ state: 'connecting' });
    expect(pool.status({ command: 'not-configured' })).toMatchObject({ state: 'idle' });
    await using lease = await pool.acquire(slow.config);
    expect((await lease.value.listTools()).items.map(({ name }) => name)).toEqual(['late']);
    expect(await never).toMatchObject({ code: 'timeout' });
    expect(pool.status(config)).toMatchObject({
      state: 'degraded',
      lastError: { code: 'timeout' },
      retryAt: expect.any(String),
    });
    expect(silent.logged('start').map(({ pid }) => isAlive(pid))).toEqual([false]);
  });
});

describe.concurrent('opencode-24414: text where messages should be', () => {
  it('does no harm, and is told once with a short sample', async () => {
    const problems: Problem[] = [];
    await using pool = new ConnectionPool({ onProblem: (problem) => void problems.push(problem) });
    const config = {
      command: process.execPath,
      args: [caseFile('opencode-24414/server.mjs')],
      label: 'noisy',
    };
    await using lease = await pool.acquire(config);
    expect((await lease.value.listTools()).items).toHaveLength(1);
    for (let i = 0; i < 3; i++)
      expect(textOf(await lease.value.callTool('echo', { i }))).toContain(`{"i":${i}}`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ source: 'noisy', severity: 'warning' });
    expect(problems[0]!.message.length).toBeLessThan(400);
  });
});

describe.concurrent('mcpx-28 and vercel-ai-19240: lists', () => {
  it('lose one bad entry, and say which', async () => {
    using server = caseServer('mcpx-28/server.mjs');
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire({ ...server.config, label: 'mixed' });
    const { items, problems } = await lease.value.listTools();
    const names = items.map(({ name }) => name);
    expect(names).toEqual(
      'good1 out-no-type in-empty in-null in-missing out-bad-ref good2'.split(' '),
    );
    for (const { inputSchema } of items) expect(inputSchema).toEqual(expect.any(Object));
    for (const name of names)
      expect(textOf(await lease.value.callTool(name, {}))).toBe(`called ${name}`);
    expect(problems).toMatchObject([
      { source: 'mixed', message: expect.stringMatching(/tools\[6\].*no name/) },
    ]);
  });

  it('have all pages, in order, with their cursors as they came', async () => {
    using server = caseServer('vercel-ai-19240/server.mjs');
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(server.config);
    const client = lease.value;
    const namesOf = ({ items }: { readonly items: readonly { readonly name: string }[] }) =>
      items.map(({ name }) => name).join(' ');
    expect(namesOf(await client.listTools())).toBe('t1 t2 t3 t4 t5 t6 t7');
    expect(namesOf(await client.listPrompts())).toBe('p1 p2 p3 p4 p5');
    expect(namesOf(await client.listResources())).toBe('r1 r2 r3 r4 r5');
    expect(textOf(await client.callTool('t7', {}))).toBe('called t7');
    const cursors = [null, 'b2Zmc2V0OjE=', 'b2Zmc2V0OjI='];
    for (const kind of ['tools', 'prompts', 'resources'])
      expect(server.logged(`${kind}/list`).map(({ cursor }) => cursor)).toEqual(cursors);
  });
});
