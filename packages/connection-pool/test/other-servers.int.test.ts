import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import type { Problem } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';

import { caseServer, textOf } from './case-server.ts';
import { raw } from './servers.ts';

const fast: PoolOptions = { backOff: { firstMs: 1, maxMs: 20 } };

function makeServer() {
  const server = new McpServer({ name: 'inside', version: '1.0.0' });
  server.registerTool('greet', { inputSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    content: [{ type: 'text', text: `Hello ${name}` }],
  }));
  return server;
}

describe.concurrent('a client that the program made', () => {
  it('of version 2, to a server in the same process, stays open', async () => {
    const server = makeServer();
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: 'program', version: '1' });
    const heard: string[] = [];
    client.fallbackNotificationHandler = async ({ method }) => void heard.push(method);
    await Promise.all([server.connect(theirs), client.connect(ours)]);
    const pool = new ConnectionPool(fast);
    const lease = await pool.acquire({ client });
    const told: string[] = [];
    lease.value.onNotification((method) => void told.push(method));
    expect((await lease.value.listTools()).items.map(({ name }) => name)).toEqual(['greet']);
    expect(textOf(await lease.value.callTool('greet', { name: 'Ann' }))).toBe('Hello Ann');
    server.sendToolListChanged();
    await vi.waitFor(() => expect(told).toContain('notifications/tools/list_changed'));
    await pool.close();
    expect(await client.callTool({ name: 'greet', arguments: { name: 'Bob' } })).toMatchObject({
      content: [{ text: 'Hello Bob' }],
    });
    await client.close();
    await server.close();
  });

  it('of version 1 works the same, and its end is noticed', async () => {
    const { command, args = [] } = raw();
    const client = new OldClient({ name: 'program', version: '1' });
    await client.connect(new StdioClientTransport({ command, args: [...args] }));
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire({ client });
    expect((await lease.value.listTools()).items.length).toBeGreaterThan(20);
    expect(textOf(await lease.value.callTool('echo', { text: 'v1' }))).toBe('v1');
    await expect(lease.value.callTool('rpcError', {})).rejects.toMatchObject({
      code: 'protocol-error',
      details: { rpcCode: -32602 },
    });
    const stop = new AbortController();
    const call = lease.value.callTool('never', {}, { signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(call).rejects.toMatchObject({ code: 'aborted' });
    await client.close();
    expect(pool.status({ client })).toMatchObject({ state: 'lost' });
    await expect(lease.value.callTool('echo', {})).rejects.toMatchObject({
      code: 'connect-failed',
    });
  });

  it('must be one', async () => {
    await using pool = new ConnectionPool();
    await expect(pool.acquire({ client: {} })).rejects.toMatchObject({
      code: 'invalid-config',
      message: expect.stringContaining('request()'),
    });
  });
});

describe.concurrent('a server of 2026-07-28', () => {
  it('is heard over a stream that is asked for, and asked for again', async () => {
    const handler = createMcpHandler(makeServer);
    let cut = new AbortController();
    let listens = 0;
    const inside: typeof fetch = async (input, init) => {
      const response = await handler.fetch(new Request(input, init));
      const body = typeof init?.body === 'string' ? init.body : '';
      if (!body.includes('subscriptions/listen')) return response;
      listens++;
      const { signal } = cut;
      return new Response(response.body?.pipeThrough(new TransformStream(), { signal }), response);
    };
    const pool = new ConnectionPool(fast);
    const lease = await pool.acquire({ url: 'http://inside.test/mcp', fetch: inside });
    expect(lease.value.info).toMatchObject({ era: 'modern', name: 'inside' });
    expect(textOf(await lease.value.callTool('greet', { name: 'Ann' }))).toBe('Hello Ann');
    const heardOver: number[] = [];
    lease.value.onNotification((method) => {
      if (method === 'notifications/tools/list_changed') heardOver.push(listens);
    });
    await vi.waitFor(() => {
      handler.notify.toolsChanged();
      expect(heardOver).toContain(1);
    });
    cut.abort();
    cut = new AbortController();
    // Whatever changed while nobody listened: that the lists may have changed is told with the second stream.
    await vi.waitFor(() => expect(heardOver).toContain(2), 4_000);
    expect(listens).toBe(2);
    expect(pool.inspect()).toMatchObject([{ state: 'ready' }]);
    await pool.close();
    await handler.close();
  });
});

describe.concurrent('what a server asks', () => {
  it('is answered by the pool, or by the call that it is about', async () => {
    await using pool = new ConnectionPool({
      ...fast,
      handlers: { elicitation: async () => ({ action: 'decline' }) },
    });
    await using lease = await pool.acquire(raw());
    expect(JSON.parse(textOf(await lease.value.callTool('ask', {})))).toMatchObject({
      action: 'decline',
    });
    const asked: unknown[] = [];
    const answer = await lease.value.callTool(
      'ask',
      {},
      {
        handlers: {
          elicitation: async (params) => {
            asked.push(params['message']);
            return { action: 'accept', content: { name: 'Ann' } };
          },
        },
      },
    );
    expect(JSON.parse(textOf(answer))).toMatchObject({
      action: 'accept',
      content: { name: 'Ann' },
    });
    expect(asked).toEqual(['name?']);
  });

  it('is refused where nobody answers, and not announced', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(raw());
    expect(JSON.parse(textOf(await lease.value.callTool('ask', {})))).toMatchObject({
      code: -32601,
    });
  });
});

describe.concurrent('more servers than processes', () => {
  it('wait in order, may give up, and are said to be too many', async () => {
    const problems: Problem[] = [];
    await using pool = new ConnectionPool({
      ...fast,
      maxClients: 1,
      onProblem: (problem) => void problems.push(problem),
    });
    const [a, b, c] = [raw({ more: 1 }), raw({ more: 2 }), raw({ more: 3 })];
    const held = await pool.acquire(a);
    const order: string[] = [];
    const use = async (name: string, config: typeof a) => {
      await using lease = await pool.acquire(config);
      await lease.value.callTool('echo', {});
      order.push(name);
    };
    const stop = new AbortController();
    const gaveUp = pool.acquire(b, { signal: stop.signal }).catch((error: unknown) => error);
    const waiting = [use('b', b), use('c', c)];
    stop.abort(new Error('not any more'));
    expect(await gaveUp).toMatchObject({ code: 'aborted', cause: { message: 'not any more' } });
    await held.close();
    await Promise.all(waiting);
    expect(order).toEqual(['b', 'c']);
    for (const config of [a, b, a]) await use('again', config);
    expect(problems).toMatchObject([{ code: 'pool-thrashing', severity: 'warning' }]);
    expect(pool.inspect()).toHaveLength(1);
  });

  it('all get their turn, however many wait', async () => {
    await using pool = new ConnectionPool({ ...fast, maxClients: 1 });
    const configs = [raw({ more: 4 }), raw({ more: 5 }), raw({ more: 6 })];
    const uses = Array.from({ length: 15 }, async (_, i) => {
      await using lease = await pool.acquire(configs[i % 3]!);
      return textOf(await lease.value.callTool('echo', { text: `m${i}` }));
    });
    expect(await Promise.all(uses)).toEqual(uses.map((_, i) => `m${i}`));
  });

  it('are not started when nobody waits for them any more', async () => {
    using server = caseServer('claude-code-43177/server.mjs');
    await using pool = new ConnectionPool({ ...fast, maxClients: 1 });
    const held = await pool.acquire(raw());
    const stop = new AbortController();
    const waiting = pool.acquire(server.config, { signal: stop.signal });
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
    await held.close();
    await using next = await pool.acquire(raw({ more: 1 }));
    expect(textOf(await next.value.callTool('echo', { text: 'next' }))).toBe('next');
    expect(server.log()).toEqual([]);
  });

  it('do not end a call that is under way', async () => {
    await using pool = new ConnectionPool({ ...fast, idleMs: 1 });
    await using lease = await pool.acquire(raw());
    await lease.close();
    expect(textOf(await lease.value.callTool('slow', { ms: 100 }))).toBe('slow');
  });
});

describe.concurrent('large messages', () => {
  it('are read in linear time', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(raw());
    const cpu = process.cpuUsage();
    const text = textOf(await lease.value.callTool('huge', { bytes: 50_000_000 }));
    const { user, system } = process.cpuUsage(cpu);
    expect(text.length).toBe(50_000_000);
    // A reader that joins its parts for every chunk needs minutes for this.
    expect((user + system) / 1e6).toBeLessThan(10);
  });
});

describe.concurrent('a newer server that asks by its answer', () => {
  /** Answers a call with a question first, and then with what it was told. */
  const asking: typeof fetch = async (_input, init) => {
    const {
      id,
      method,
      params = {},
    } = JSON.parse(init?.body as string) as {
      id: number;
      method: string;
      params?: Readonly<Record<string, unknown>>;
    };
    const about = {
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      ttlMs: 0,
      cacheScope: 'private',
    };
    const question = {
      method: 'elicitation/create',
      params: {
        mode: 'form',
        message: 'name?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
      },
    };
    const text = JSON.stringify([params['inputResponses'], params['requestState']]);
    const answer = () => {
      if (method === 'server/discover') return { resultType: 'complete', ...about };
      if (params['inputResponses'] === undefined)
        return {
          resultType: 'input_required',
          inputRequests: { q: question },
          requestState: 'état/1',
        };
      return { resultType: 'complete', content: [{ type: 'text', text }] };
    };
    return Response.json({ jsonrpc: '2.0', id, result: answer() });
  };

  it('is answered, with its state as it came', async () => {
    await using pool = new ConnectionPool({
      ...fast,
      handlers: { elicitation: async () => ({ action: 'accept', content: { name: 'Ann' } }) },
    });
    await using lease = await pool.acquire({ url: 'http://inside.test/mcp', fetch: asking });
    const [responses, state] = JSON.parse(
      textOf(await lease.value.callTool('who', {})),
    ) as unknown[];
    expect(responses).toMatchObject({ q: { action: 'accept', content: { name: 'Ann' } } });
    expect(state).toBe('état/1');
  });

  it('is refused in words where nobody answers', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire({ url: 'http://inside.test/mcp', fetch: asking });
    await expect(lease.value.callTool('who', {})).rejects.toMatchObject({ code: 'protocol-error' });
  });
});
