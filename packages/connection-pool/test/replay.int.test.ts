import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import type { ServerConfig } from '@patchbay/protocols';
import { scriptedServer } from '@patchbay/testkit';
import { describe, expect, it, vi } from 'vitest';

import { textOf } from './case-server.ts';
import { startHttp } from './fixtures/raw-server.mjs';
import { REFUSE, smallServer } from './servers.ts';

const fast: PoolOptions = { backOff: { firstMs: 1, maxMs: 20 } };

/** A file in which a server counts what it did, a line each. */
async function counter() {
  const folder = await mkdtemp(join(tmpdir(), 'patchbay-replay-'));
  const file = join(folder, 'did');
  const lines = async () => (await readFile(file, 'utf8').catch(() => '')).split('\n');
  return {
    file,
    count: async (what: string) => (await lines()).filter((line) => line === what).length,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

/** It is killed at the moment that the call names, the first time only. */
const killed = (file: string): ServerConfig =>
  smallServer(
    `({ id, method, params }) => {
      if (method !== 'tools/call') return ${REFUSE};
      const fs = require('node:fs');
      const did = (what) => fs.appendFileSync(process.env.FILE, what + '\\n');
      const isFirst = !fs.existsSync(process.env.FILE);
      did('asked');
      const die = (when) => isFirst && params.name === when && process.kill(process.pid, 'SIGKILL');
      die('before');
      did('begun');
      die('during');
      did('paid');
      die('after');
      answer(id, text('paid'));
    }`,
    { env: { FILE: file } },
  );

describe.concurrent('a payment by a server that is killed', () => {
  it.each([
    ['before', 0],
    ['during', 0],
    ['after', 1],
  ])('%s it pays is not made again; its outcome is unknown', async (when, paid) => {
    await using did = await counter();
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(killed(did.file));
    await expect(lease.value.callTool(when, {})).rejects.toMatchObject({
      code: 'outcome-unknown',
      message: expect.stringContaining('may or may not have run'),
    });
    expect([await did.count('asked'), await did.count('paid')]).toEqual([1, paid]);
    expect(textOf(await lease.value.callTool(when, {}))).toBe('paid');
    expect(await did.count('paid')).toBe(paid + 1);
  });

  it.each<[string, Partial<ServerConfig>, object]>([
    ['the caller says that it may be', {}, { repeatable: true }],
    ['the configuration says that everything may be', { replay: 'always' }, {}],
  ])('is made again if %s', async (_who, config, options) => {
    for (const when of ['before', 'during', 'after']) {
      await using did = await counter();
      await using pool = new ConnectionPool(fast);
      await using lease = await pool.acquire({ ...killed(did.file), ...config } as ServerConfig);
      expect(textOf(await lease.value.callTool(when, {}, options))).toBe('paid');
      expect(await did.count('asked')).toBe(2);
    }
  });

  it('is not made again with `never`, whoever says that it may be', async () => {
    await using did = await counter();
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire({ ...killed(did.file), replay: 'never' });
    await expect(lease.value.callTool('during', {}, { repeatable: true })).rejects.toMatchObject({
      code: 'outcome-unknown',
    });
    expect(await did.count('asked')).toBe(1);
  });

  it.each(['drop', 'cut', 'end', 's500'])('over HTTP is not made again (%s)', async (tool) => {
    await using did = await counter();
    const server = await startHttp({ log: did.file });
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire({ url: server.url });
    const call = lease.value.callTool(tool, { key: 'paid' });
    await expect(call).rejects.toMatchObject({ code: 'outcome-unknown' });
    expect(await did.count('paid')).toBe(1);
    await pool.close();
    await server.close();
  });
});

describe('an older server', () => {
  it('is asked again after a week whether it is a newer one', async () => {
    let now = Date.now();
    const clock = { now: () => now, wait: async () => undefined };
    await using server = await scriptedServer({ tools: [{ name: 'works' }] });
    await using pool = new ConnectionPool({ clock });
    await using lease = await pool.acquire(server.config);
    const asked = () => server.requests.filter((method) => method === 'server/discover').length;
    const again = async () => {
      server.die();
      await vi.waitFor(() => expect(pool.inspect()[0]).toMatchObject({ state: 'lost' }));
      await lease.value.callTool('works', {});
      return asked();
    };
    expect(asked()).toBe(1);
    expect(await again()).toBe(1);
    now += 8 * 24 * 3_600_000;
    expect(await again()).toBe(2);
  });
});
