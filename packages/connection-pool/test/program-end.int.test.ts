import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { bundled } from './bundle.ts';
import { caseServer, isAlive } from './case-server.ts';

/** A server behind a wrapper, neither of which ends with its input. */
const STUBBORN = 'typescript-sdk-2023/wrapper.mjs';

let program: Awaited<ReturnType<typeof bundled>>;
beforeAll(async () => {
  program = await bundled('program.ts');
});
afterAll(() => program[Symbol.dispose]());

function run(how: string) {
  const server = caseServer(STUBBORN);
  const args = [program.file, JSON.stringify(server.config), how];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return {
    child,
    ready: once(createInterface({ input: child.stdout }), 'line'),
    exit: once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
    errors: () => stderr,
    pids: () => [...new Set(server.log().map(({ pid }) => pid))],
    [Symbol.dispose]: () => server[Symbol.dispose](),
  };
}

describe.concurrent('a program that uses a stubborn server', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'] as const)(
    'ends by %s as if it had none, and leaves no process',
    async (signal) => {
      using running = run('signal');
      await running.ready;
      const pids = running.pids();
      expect(pids.map(isAlive)).toEqual([true, true]);
      running.child.kill(signal);
      expect(await running.exit).toEqual([null, signal]);
      await vi.waitFor(() => expect(pids.map(isAlive)).toEqual([false, false]), 5_000);
    },
  );

  it('leaves no process when it ends by an exception, and says what it was', async () => {
    using running = run('thrown');
    expect(await running.exit).toEqual([1, null]);
    const pids = running.pids();
    expect(pids).toHaveLength(2);
    await vi.waitFor(() => expect(pids.map(isAlive)).toEqual([false, false]));
    expect(running.errors()).toContain('not caught');
  });

  it('can end by itself once the pool is closed, and has said nothing', async () => {
    using running = run('closed');
    expect(await running.exit).toEqual([0, null]);
    expect(running.pids().map(isAlive)).toEqual([false, false]);
    expect(running.errors()).toBe('');
  });
});
