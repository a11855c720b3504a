import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ConnectionPool } from '@patchbay/connection-pool';
import { PatchbayError, type McpClient, type ServerConfig } from '@patchbay/protocols';
import { expect, it } from 'vitest';

import { startHttp } from './fixtures/raw-server.mjs';
import { behindShell, childrenOf, groupMembers, raw } from './servers.ts';

/** How long it goes on, in seconds. */
const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 60);
const CLIENTS = 50;

const EXPECTED: ReadonlySet<string> = new Set([
  'outcome-unknown',
  'timeout',
  'aborted',
  'connection-lost',
  'connect-failed',
  'unavailable',
]);

/** Repeatable numbers (mulberry32). */
function random(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const seed = Number(process.env['SEED'] ?? Date.now() % 1e9);

it(`settles every call of ${CLIENTS} clients on 6 servers for ${SECONDS} s, runs none twice, and leaves nothing (SEED=${seed})`, async () => {
  const before = resources();
  const pick = random(seed);
  const folder = await mkdtemp(join(tmpdir(), 'patchbay-soak-'));
  const log = join(folder, 'executed');
  const warnings: string[] = [];
  const heard = (problem: unknown) => void warnings.push(String(problem));
  process.on('warning', heard).on('unhandledRejection', heard).on('uncaughtException', heard);

  const pool = new ConnectionPool({
    backOff: { firstMs: 5, maxMs: 50 },
    maxClients: 3,
  });
  const options = { log, lifeMs: (SECONDS + 120) * 1_000 };
  let sse = await startHttp({ log, expired: 404 });
  const { port } = sse;
  const forgetful = await startHttp({ log, json: true, expired: 400 });
  const newer = await startHttp({ log, era: 'modern' });
  const servers: readonly ServerConfig[] = [
    { url: sse.url },
    { url: forgetful.url },
    { url: newer.url },
    raw(options),
    behindShell({ ...options, ignoreEof: true, ignoreTerm: true }),
    raw({ ...options, era: 'modern' }),
  ];

  const pids = new Set<number>();
  const count = { calls: 0, answered: 0, kills: 0, forgotten: 0, restarts: 0, longestMs: 0 };
  const refused = new Map<string, number>();
  const heap: number[] = [];
  const until = performance.now() + SECONDS * 1_000;
  const isOver = () => performance.now() >= until;

  let serial = 0;
  const act = async (client: McpClient): Promise<unknown> => {
    const key = `k${serial++}`;
    const action = pick(60);
    if (action === 0) return client.callTool('die', { key });
    if (action <= 2) return client.callTool('never', { key }, { timeoutMs: 20 + pick(50) });
    if (action <= 4) {
      const signal = AbortSignal.timeout(1 + pick(60));
      return client.callTool('slow', { key, ms: 40 }, { signal });
    }
    if (action === 5) return client.callTool('changed', { key });
    if (action === 6) return client.listTools();
    if (action <= 9) return client.callTool('slow', { key, ms: 200 + pick(400) });
    if (action === 10) return client.callTool('end', { key });
    const text = `m${serial}`;
    const { content } = await client.callTool('echo', { key, text });
    expect(content).toEqual([{ type: 'text', text }]);
    return content;
  };
  const client = async () => {
    while (!isOver()) {
      count.calls++;
      const since = performance.now();
      const stop = new AbortController();
      if (pick(30) === 0) setTimeout(() => stop.abort(), pick(20));
      try {
        const { signal } = stop;
        await using lease = await pool.acquire(servers[pick(servers.length)]!, { signal });
        for (const { pid } of pool.inspect()) if (pid !== undefined) pids.add(pid);
        await act(lease.value);
        count.answered++;
      } catch (error) {
        if (!PatchbayError.isInstance(error)) throw error;
        refused.set(error.code, (refused.get(error.code) ?? 0) + 1);
      } finally {
        count.longestMs = Math.max(count.longestMs, Math.round(performance.now() - since));
      }
    }
  };
  const trouble = async () => {
    for (let turn = 0; !isOver(); turn++) {
      await new Promise((resolve) => setTimeout(resolve, 100 + pick(200)));
      const alive = pool.inspect().flatMap(({ pid }) => pid ?? []);
      const victim = alive[pick(Math.max(1, alive.length))];
      if (victim !== undefined && pick(2) === 0) {
        count.kills++;
        try {
          process.kill(victim, 'SIGKILL');
        } catch {
          // It ended in the same moment.
        }
      }
      if (pick(3) === 0) {
        count.forgotten++;
        for (const server of [sse, forgetful]) server.expire();
      }
      if (turn % 20 === 19) {
        count.restarts++;
        await sse.close();
        sse = await startHttp({ log, expired: 404, http: port });
      }
      if (turn % 5 === 0) {
        globalThis.gc?.();
        heap.push(Math.round(process.memoryUsage().heapUsed / 1e6));
      }
    }
  };

  await Promise.all([trouble(), ...Array.from({ length: CLIENTS }, client)]);
  await pool.close();
  await Promise.all([sse.close(), forgetful.close(), newer.close()]);

  const executed = (await readFile(log, 'utf8')).split('\n').filter((key) => key !== '');
  const twice = executed.filter((key, at) => executed.indexOf(key) !== at);
  const third = Math.ceil(heap.length / 3);
  const mean = (values: readonly number[]) =>
    Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);
  const [early, late] = [mean(heap.slice(third, 2 * third)), mean(heap.slice(-third))];
  console.log(
    JSON.stringify({
      seed,
      seconds: SECONDS,
      ...count,
      refused: Object.fromEntries(refused),
      executed: executed.length,
      twice: twice.length,
      processes: pids.size,
      heapMb: [early, late],
    }),
  );
  await rm(folder, { recursive: true });
  process.off('warning', heard).off('unhandledRejection', heard).off('uncaughtException', heard);

  expect(count.answered).toBeGreaterThan(count.calls / 2);
  expect([...refused.keys()].filter((code) => !EXPECTED.has(code))).toEqual([]);
  expect(twice).toEqual([]);
  expect(warnings).toEqual([]);
  // What was told to end has ended a moment later.
  const end = performance.now() + 5_000;
  while (leftSince(before).length > 0 && performance.now() < end)
    await new Promise((resolve) => setImmediate(resolve));
  expect(leftSince(before)).toEqual([]);
  expect([...pids].filter((pid) => groupMembers(pid) > 0)).toEqual([]);
  // The middle of the time against its end: what is kept for each call would show.
  expect(late).toBeLessThan(early * 1.5 + 20);
});

/** What keeps the program going, what listens to it, and what it started. */
function resources(): readonly string[] {
  const listeners = process
    .eventNames()
    .flatMap((name) => process.listeners(name as 'exit').map(() => `listener: ${String(name)}`));
  return [...process.getActiveResourcesInfo(), ...listeners, ...childrenOf(process.pid)];
}

/** What is there now, and was not before. */
function leftSince(before: readonly string[]): readonly string[] {
  const known = [...before];
  return resources().filter((one) => {
    const at = known.indexOf(one);
    if (at !== -1) known.splice(at, 1);
    return at === -1;
  });
}
