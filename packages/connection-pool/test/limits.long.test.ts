import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import { describe, expect, it } from 'vitest';

import { textOf } from './case-server.ts';
import { startHttp } from './fixtures/raw-server.mjs';
import { REFUSE, smallServer } from './servers.ts';

const fast: PoolOptions = { backOff: { firstMs: 5, maxMs: 50 } };

async function connected(url: string) {
  const pool = new ConnectionPool(fast);
  const lease = await pool.acquire({ url });
  return { pool, client: lease.value, [Symbol.asyncDispose]: () => pool.close() };
}

describe('a server', () => {
  it('whose list is large beyond all measure is cut, too', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(
      smallServer(`({ id, method, params }) => {
        if (method !== 'tools/list') return ${REFUSE};
        const page = Number(params.cursor ?? 0);
        const tool = { name: 't' + page, description: 'x'.repeat(9_000_000), inputSchema: {} };
        answer(id, { tools: [tool], nextCursor: String(page + 1) });
      }`),
    );
    const { items, problems } = await lease.value.listTools();
    expect(items).toHaveLength(8);
    expect(problems).toMatchObject([{ message: expect.stringContaining('too long') }]);
  });
});

describe('a stream that can be resumed', () => {
  it('is resumed soon, although the server wished for a long wait', async () => {
    const server = await startHttp({});
    await using http = await connected(server.url);
    const call = http.client.callTool(
      'primed',
      { resume: 'answer', retry: 600_000 },
      { timeoutMs: 15_000 },
    );
    expect(textOf(await call)).toBe('after resume');
    await http.pool.close();
    await server.close();
  });
});

describe('thousands of calls over one connection', () => {
  it('print no warning', async () => {
    const warnings: string[] = [];
    const heard = ({ message }: Error) => void warnings.push(message);
    process.on('warning', heard);
    const server = await startHttp({ json: true });
    try {
      await using http = await connected(server.url);
      for (let i = 0; i < 30; i++) {
        const hundred = Array.from({ length: 100 }, (_, n) =>
          http.client.callTool('echo', { text: `m${n}` }),
        );
        await Promise.all(hundred);
      }
    } finally {
      process.off('warning', heard);
      await server.close();
    }
    expect(warnings).toEqual([]);
  });
});
