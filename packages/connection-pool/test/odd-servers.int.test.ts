import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import type { StdioServerConfig } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { textOf } from './case-server.ts';
import { childrenOf, groupMembers, raw, REFUSE, smallServer } from './servers.ts';

const fast: PoolOptions = { backOff: { firstMs: 1, maxMs: 20 } };

describe.concurrent('a server', () => {
  it('that answers with megabytes and exits at once is heard to the end', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(
      smallServer(`({ id, method }) => {
        if (method !== 'tools/call') return ${REFUSE};
        answer(id, text('x'.repeat(3_000_000)));
        process.stdout.write('', () => process.exit(0));
      }`),
    );
    expect(textOf(await lease.value.callTool('any', {})).length).toBe(3_000_000);
    await vi.waitFor(() => expect(pool.inspect()[0]).toMatchObject({ state: 'lost' }));
  });

  it('that says nothing to questions it does not know is connected, and not asked them again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'patchbay-odd-'));
    const log = join(folder, 'log');
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(
      smallServer(
        `({ id, method }) => {
          require('node:fs').appendFileSync(process.env.LOG, method + '\\n');
          if (method === 'tools/call') process.exit(0);
          if (method === 'tools/list') answer(id, { tools: [] });
        }`,
        { env: { LOG: log }, timeouts: { connectMs: 3_000 } },
      ),
    );
    expect(lease.value.info).toMatchObject({ name: 'odd', era: 'legacy' });
    await expect(lease.value.callTool('any', {})).rejects.toMatchObject({
      code: 'outcome-unknown',
    });
    expect(await lease.value.listTools()).toEqual({ items: [], problems: [] });
    const asked = (await readFile(log, 'utf8')).split('\n');
    expect(asked.filter((method) => method === 'server/discover')).toHaveLength(1);
    await rm(folder, { recursive: true });
  });

  it('that sends several messages in one line is understood', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(
      smallServer(`({ id, method }) => {
        if (method !== 'tools/call') return ${REFUSE};
        say([
          { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
          { jsonrpc: '2.0', id, result: text('in a batch') },
        ]);
      }`),
    );
    const heard: string[] = [];
    lease.value.onNotification((method) => void heard.push(method));
    expect(textOf(await lease.value.callTool('any', {}))).toBe('in a batch');
    await vi.waitFor(() => expect(heard).toContain('notifications/tools/list_changed'));
  });

  it('that stops reading and is killed settles what could not even be sent', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(
      smallServer(`({ id, method }) => {
        if (method !== 'tools/call') return ${REFUSE};
        process.stdin.pause();
      }`),
    );
    const big = 'x'.repeat(1_000_000);
    const calls = Array.from({ length: 10 }, () => lease.value.callTool('any', { big }));
    const settled = Promise.allSettled(calls);
    await vi.waitFor(() =>
      expect(pool.inspect()[0]).toMatchObject({ calls: 10, pid: expect.any(Number) }),
    );
    process.kill(pool.inspect()[0]!.pid!, 'SIGKILL');
    const codes = (await settled).map((one) => one.status === 'rejected' && one.reason.code);
    expect(new Set(codes)).toEqual(new Set(['outcome-unknown']));
  });

  it('that answers twice, late, or to nobody does no harm', async () => {
    const problems: unknown[] = [];
    await using pool = new ConnectionPool({ ...fast, onProblem: (one) => void problems.push(one) });
    await using lease = await pool.acquire(raw());
    const client = lease.value;
    expect(textOf(await client.callTool('twice', {}))).toBe('first');
    expect(textOf(await client.callTool('wrongId', {}))).toBe('right');
    await expect(client.callTool('slow', { ms: 500 }, { timeoutMs: 20 })).rejects.toMatchObject({
      code: 'timeout',
    });
    expect(textOf(await client.callTool('slow', { ms: 700 }))).toBe('slow');
    expect(pool.inspect()).toMatchObject([{ state: 'ready' }]);
    expect(problems).toEqual([]);
  });

  it('whose list grows for ever is cut', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(raw({ loop: 'growing' }));
    const { items, problems } = await lease.value.listTools();
    expect(items).toHaveLength(1_000);
    expect(problems).toMatchObject([{ message: expect.stringContaining('no end') }]);
  });

  it('may take as long as it likes where no end is set', async () => {
    await using pool = new ConnectionPool({ ...fast, idleMs: 2 ** 40, maxWaitMs: 2 ** 40 });
    const endless = { connectMs: 2 ** 40, listMs: Infinity, callMs: 2 ** 40, callMaxMs: Infinity };
    await using lease = await pool.acquire({ ...raw(), timeouts: endless });
    expect((await lease.value.listTools()).items.length).toBeGreaterThan(20);
    expect(textOf(await lease.value.callTool('slow', { ms: 50 }))).toBe('slow');
    expect(textOf(await lease.value.callTool('slow', { ms: 50 }, { timeoutMs: Infinity }))).toBe(
      'slow',
    );
    await lease.close();
    await using again = await pool.acquire(raw());
    expect(textOf(await again.value.callTool('echo', { text: 'same' }))).toBe('same');
    expect(pool.inspect()).toMatchObject([{ calls: 4 }]);
  });
});

describe.concurrent('closing a pool', () => {
  it('waits for what it closed a moment before, for being idle', async () => {
    const pool = new ConnectionPool({ idleMs: 1 });
    const lease = await pool.acquire(raw({ ignoreEof: true, ignoreTerm: true }));
    const { pid } = pool.inspect()[0]!;
    await lease.close();
    await vi.waitFor(() => expect(pool.inspect()).toEqual([]));
    expect(groupMembers(pid!)).toBe(1);
    await pool.close();
    expect(groupMembers(pid!)).toBe(0);
  });

  it('tells calls that it was closed', async () => {
    const pool = new ConnectionPool();
    const lease = await pool.acquire(raw());
    const call = lease.value.callTool('never', {}).catch((error: unknown) => error);
    await vi.waitFor(() => expect(pool.inspect()[0]).toMatchObject({ calls: 1 }));
    await pool.close();
    expect(await call).toMatchObject({ code: 'closed' });
    await expect(lease.value.callTool('echo', {})).rejects.toMatchObject({ code: 'closed' });
  });

  it('in the middle of a rebuild ends that too', async () => {
    const pool = new ConnectionPool(fast);
    const lease = await pool.acquire(raw({ init: 'slow', mark: 'rebuilt' }));
    await lease.value.callTool('die', {}).catch(() => undefined);
    const calls = Array.from({ length: 5 }, () =>
      lease.value.callTool('echo', {}).catch((error: unknown) => error),
    );
    expect(pool.inspect()).toMatchObject([{ state: 'connecting' }]);
    await pool.close();
    for (const error of await Promise.all(calls)) expect(error).toMatchObject({ code: 'closed' });
    expect(childrenOf(process.pid).filter((command) => command.includes('rebuilt'))).toEqual([]);
  });
});

describe.concurrent('one run that needs two servers, where one process is allowed', () => {
  it('gets both by turns, also when two runs want them crosswise', async () => {
    await using pool = new ConnectionPool({ ...fast, maxClients: 1 });
    const [a, b] = [raw({ instructions: 'a' }), raw({ instructions: 'b' })];
    const run = async (first: StdioServerConfig, second: StdioServerConfig) => {
      await using one = await pool.acquire(first);
      await using two = await pool.acquire(second);
      for (let i = 0; i < 3; i++) {
        expect(textOf(await one.value.callTool('echo', { text: 'one' }))).toBe('one');
        expect(textOf(await two.value.callTool('echo', { text: 'two' }))).toBe('two');
      }
    };
    await Promise.all([run(a, b), run(b, a)]);
    expect(pool.inspect().filter(({ pid }) => pid !== undefined).length).toBeLessThan(2);
  });

  it('keeps a server that holds state for a session as long as there is a lease on it', async () => {
    await using pool = new ConnectionPool({ ...fast, maxClients: 1, maxWaitMs: 100 });
    const stateful = { ...raw(), sharing: 'session' as const };
    await using one = await pool.acquire(stateful, { scope: { session: 's' } });
    const { pid } = pool.inspect()[0]!;
    await expect(pool.acquire(raw({ more: 1 }))).rejects.toMatchObject({ code: 'pool-exhausted' });
    expect(textOf(await one.value.callTool('echo', { text: 'still' }))).toBe('still');
    expect(pool.inspect()[0]).toMatchObject({ pid });
  });
});

describe.concurrent('a list', () => {
  it('is not taken for an empty one because the server dies before it is asked', async () => {
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(raw());
    for (let i = 0; i < 5; i++) {
      const { pid } = pool.inspect()[0]!;
      const listing = lease.value.listTools();
      process.kill(pid!, 'SIGKILL');
      expect((await listing).items.length).toBeGreaterThan(20);
    }
  });
});

describe('`allowCommands`', () => {
  it('means the program that is started, not its name', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'patchbay-allow-'));
    try {
      await writeFile(join(folder, 'node'), '#!/bin/sh\nexit 7\n');
      await chmod(join(folder, 'node'), 0o755);
      await using pool = new ConnectionPool({ ...fast, allowCommands: ['node'] });
      const { args = [] } = raw();
      await using byName = await pool.acquire({ command: 'node', args });
      expect(byName.value.info.name).toBe('raw');
      const refused = { code: 'connect-failed', message: expect.stringContaining(folder) };
      const PATH = [folder, dirname(process.execPath)].join(delimiter);
      await expect(pool.acquire({ command: 'node', args, env: { PATH } })).rejects.toMatchObject(
        refused,
      );
      await expect(pool.acquire({ command: './node', args, cwd: folder })).rejects.toMatchObject(
        refused,
      );
      await symlink('node', join(folder, 'other'));
      await expect(pool.acquire({ command: join(folder, 'other'), args })).rejects.toMatchObject(
        refused,
      );
      expect(pool.inspect().filter(({ pid }) => pid !== undefined)).toHaveLength(1);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('a program that is there and cannot be started', () => {
  it('keeps its arguments to itself', async () => {
    await using pool = new ConnectionPool(fast);
    const config = { command: 'no-such-command-x', args: ['--token=s3cr3t-of-args'] };
    const error: unknown = await pool.acquire(config).catch((thrown: unknown) => thrown);
    const { inspect } = await import('node:util');
    expect(inspect(error, { depth: 10 })).not.toContain('s3cr3t-of-args');
  });
});
