import { execFile } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import type { StdioServerConfig } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { bundled } from './bundle.ts';
import { caseFile, caseServer, isAlive, textOf } from './case-server.ts';
import { raw } from './servers.ts';

const fast: PoolOptions = { backOff: { firstMs: 1, maxMs: 20 } };
const failure = (promise: Promise<unknown>): Promise<Error & { code?: string }> =>
  promise.then(
    () => expect.unreachable('should have failed'),
    (error: Error) => error,
  );

/** Runs with listeners for what would end a program. */
async function calmly(run: () => Promise<void>): Promise<void> {
  const heard: unknown[] = [];
  const listener = (error: unknown) => void heard.push(error);
  process.on('uncaughtException', listener).on('unhandledRejection', listener);
  try {
    await run();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('uncaughtException', listener).off('unhandledRejection', listener);
  }
  expect(heard).toEqual([]);
}

describe.concurrent('pi-2928: a server that ends at once', () => {
  it.each([
    ['exits', {}, /code 1/, {}],
    // That a pipe has no reader shows at the second write only: the first question of newer clients has no answer.
    [
      'closes its input and stays',
      { FIXTURE_MODE: 'close-stdin' },
      /closed its input|handshake/,
      { connectMs: 1_500 },
    ],
  ])('%s', async (_name, env, why, timeouts) => {
    const config: StdioServerConfig = {
      command: process.execPath,
      args: [caseFile('pi-2928/exits.mjs')],
      env,
      label: 'exits',
      timeouts,
    };
    await using pool = new ConnectionPool({ backOff: { firstMs: 60_000 } });
    await using healthy = await pool.acquire(raw());
    await calmly(async () => {
      const attempt = () => failure(pool.acquire(config));
      const errors = [];
      for (let i = 0; i < 15; i++) errors.push(await attempt());
      errors.push(...(await Promise.all(Array.from({ length: 15 }, attempt))));
      for (const error of errors) {
        expect(error).toMatchObject({
          code: expect.stringMatching(/^(connect-failed|timeout|unavailable)$/),
        });
        expect(error.message).toContain('exits');
        expect(error.message).toMatch(why);
      }
    });
    expect(pool.status(config)).toMatchObject({ state: 'degraded' });
    expect(pool.status(config).pid).toBeUndefined();
    expect(textOf(await healthy.value.callTool('echo', { text: 'fine' }))).toBe('fine');
    expect(pool.status(raw())).toMatchObject({ state: 'ready' });
  });
});

describe.concurrent('claude-code-43177: a server that crashes in a call', () => {
  it('is there again at the next call; the crashed call is not repeated', async () => {
    using server = caseServer('claude-code-43177/server.mjs');
    await using pool = new ConnectionPool(fast);
    await using lease = await pool.acquire(server.config);
    const states: unknown[] = [];
    lease.value.onNotification((method, params) => {
      if (method === 'patchbay/connection') states.push((params as { state: string }).state);
    });
    const before = textOf(await lease.value.callTool('echo', {}));
    expect(await failure(lease.value.callTool('crash', {}))).toMatchObject({
      code: 'outcome-unknown',
      details: { exitCode: 1 },
    });
    expect(pool.status(server.config)).toMatchObject({ state: 'lost' });
    const calling = lease.value.callTool('echo', {});
    expect(pool.status(server.config)).toMatchObject({ state: 'connecting' });
    const after = textOf(await calling);
    expect(pool.status(server.config)).toMatchObject({ state: 'ready' });
    expect(after).toMatch(/^pid=\d+$/);
    expect(after).not.toBe(before);
    expect(server.logged('crash')).toHaveLength(1);
    expect(states).toEqual(['lost', 'ready']);
  });

  it('that cannot start is tried a bounded number of times, at growing distances', async () => {
    using server = caseServer('claude-code-43177/server.mjs', { FIXTURE_CRASH_AT_BOOT: '1' });
    await using pool = new ConnectionPool({
      backOff: { firstMs: 100, maxMs: 10_000 },
      random: () => 1,
    });
    // Asked all the time, it is tried only when it may be.
    const retryAt = new Set<string>();
    const waits: number[] = [];
    while (retryAt.size < 4) {
      const error = await failure(pool.acquire(server.config));
      const { details } = error as { details?: { retryAt?: string } };
      const at = details?.retryAt ?? '';
      // From the end of the attempt: how long that took is another thing.
      if (!retryAt.has(at)) waits.push(Date.parse(at) - Date.now());
      retryAt.add(at);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const starts = server.logged('start');
    const times = [...retryAt].map((text) => Date.parse(text));
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(waits.at(-1)! / waits[0]!).toBeGreaterThan(4);
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(100);
    // Every other attempt starts it twice, should it be an older server that ends at the first question of newer clients.
    expect(starts.length).toBeLessThanOrEqual(Math.ceil(1.5 * times.length));
  });
});

describe.concurrent('typescript-sdk-2023: a wrapper that hands on nothing', () => {
  it('ends with the server behind it', async () => {
    using server = caseServer('typescript-sdk-2023/wrapper.mjs');
    const pool = new ConnectionPool();
    await using lease = await pool.acquire(server.config);
    await lease.value.listTools();
    const pids = server.log().map(({ pid }) => pid);
    expect(pids).toHaveLength(2);
    expect(pids.map(isAlive)).toEqual([true, true]);
    await pool.close();
    await vi.waitFor(() => expect(pids.map(isAlive)).toEqual([false, false]));
  });

  it('ends when connecting was given up half way', async () => {
    // Nothing is answered, so that it stays half way.
    using server = caseServer('mute-wrapper.mjs');
    const pool = new ConnectionPool();
    const stop = new AbortController();
    const connecting = failure(pool.acquire(server.config, { signal: stop.signal }));
    await vi.waitFor(() => expect(server.logged('wrapper').length).toBe(2));
    stop.abort(new Error('enough'));
    expect(await connecting).toMatchObject({ code: 'aborted', cause: { message: 'enough' } });
    await pool.close();
    await vi.waitFor(() => expect(server.log().map(({ pid }) => isAlive(pid))).not.toContain(true));
  });

  it.each([
    ['closed', 'typescript-sdk-2023/wrapper.mjs'],
    ['not closed', 'typescript-sdk-2023/wrapper.mjs'],
    ['half way', 'typescript-sdk-2023/wrapper.mjs'],
    ['half way', 'mute-wrapper.mjs'],
  ])('ends with a program whose pool was %s (%s)', async (how, script) => {
    using server = caseServer(script);
    using program = await bundled('program.ts');
    const args = [program.file, JSON.stringify(server.config), how];
    const { stderr } = await promisify(execFile)(process.execPath, args, { timeout: 15_000 });
    expect(stderr).toBe('');
    const pids = server.log().map(({ pid }) => pid);
    expect(pids.length).toBeGreaterThan(0);
    await vi.waitFor(() => expect(pids.map(isAlive)).not.toContain(true));
  });
});

describe.concurrent('typescript-sdk-579: closing', () => {
  it.each([
    ['polite', ['stdin-end', 'flushed']],
    ['slow', ['stdin-end', 'sigterm']],
    ['stubborn', ['stdin-end', 'sigterm']],
  ])('a %s server', async (mode, events) => {
    using server = caseServer('typescript-sdk-579/server.mjs', { FIXTURE_MODE: mode });
    const pool = new ConnectionPool();
    await using lease = await pool.acquire(server.config);
    const call = failure(lease.value.callTool('hang', {}));
    const { pid } = pool.inspect()[0]!;
    await Promise.all([pool.close(), pool.close()]);
    expect(isAlive(pid!)).toBe(false);
    expect(server.log().map(({ event }) => event)).toEqual(['start', ...events]);
    expect(await call).toMatchObject({ code: expect.stringMatching(/outcome-unknown|closed/) });
  });
});

describe.concurrent('qwen-code-3817: many first uses of a slow server', () => {
  it('share one start, also after a restart', async () => {
    using server = caseServer('qwen-code-3817/server.mjs');
    await using pool = new ConnectionPool(fast);
    const use = async (what: 'list' | 'call' | 'connect') => {
      await using lease = await pool.acquire(server.config);
      if (what === 'list') return (await lease.value.listTools()).items[0]?.name;
      if (what === 'call')
        return textOf(await lease.value.callTool('echo', {}, { repeatable: true }));
      return undefined;
    };
    const kinds = Array.from({ length: 20 }, (_, i) =>
      i < 10 ? ('list' as const) : i < 15 ? ('call' as const) : ('connect' as const),
    );
    const answers = await Promise.all(kinds.map((kind) => use(kind)));
    const pid = `pid=${pool.inspect()[0]!.pid}`;
    expect(answers).toEqual(
      kinds.map((kind) => ({ list: 'echo', call: pid, connect: undefined })[kind]),
    );
    for (let i = 0; i < 20; i++) expect(await use('call')).toBe(pid);
    expect(server.logged('start')).toHaveLength(1);

    process.kill(pool.inspect()[0]!.pid!, 'SIGKILL');
    const again = await Promise.all(Array.from({ length: 5 }, () => use('call')));
    expect(new Set(again).size).toBe(1);
    expect(again[0]).not.toBe(pid);
    const starts = server.logged('start').map((line) => line.pid);
    expect(starts).toHaveLength(2);
    expect(starts.filter(isAlive)).toHaveLength(1);
  });

  it('fail together, and the next use begins afresh', async () => {
    using server = caseServer('qwen-code-3817/server.mjs');
    const [script] = server.config.args!;
    const missing = join(server.folder, 'server.mjs');
    const config = { ...server.config, args: [missing] };
    await using pool = new ConnectionPool({ backOff: { firstMs: 0 } });
    const first = await Promise.allSettled(Array.from({ length: 5 }, () => pool.acquire(config)));
    const reasons = new Set(first.map((one) => (one.status === 'rejected' ? one.reason : 'none')));
    expect([...reasons]).toMatchObject([{ code: 'connect-failed' }]);
    await copyFile(script!, missing);
    await using lease = await pool.acquire(config);
    expect(textOf(await lease.value.callTool('echo', {}))).toMatch(/^pid=/);
    expect(server.logged('start')).toHaveLength(1);
  });
});
