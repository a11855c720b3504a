import { ConnectionPool } from '@patchbay/connection-pool';
import { PatchbayError, type McpClient } from '@patchbay/protocols';
import { expect, it } from 'vitest';

import { behindShell, groupMembers, raw } from './servers.ts';

/** How long it goes on, in seconds. */
const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 20);
const CLIENTS = 24;

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

it(`settles every call under deaths, aborts and list changes for ${SECONDS} s, and leaves nothing (SEED=${seed})`, async () => {
  const pick = random(seed);
  const pool = new ConnectionPool({ backOff: { firstMs: 5, maxMs: 50 }, maxClients: 4 });
  const configs = [
    raw({ lifeMs: 600_000 }),
    behindShell({ lifeMs: 600_000 }),
    raw({ lifeMs: 600_000, era: 'modern' }),
  ];
  const pids = new Set<number>();
  const count = { calls: 0, answered: 0, refused: new Map<string, number>() };
  const until = performance.now() + SECONDS * 1000;

  const act = async (client: McpClient): Promise<unknown> => {
    const action = pick(20);
    if (action === 0) return client.callTool('die', {});
    if (action === 1) return client.callTool('never', {}, { timeoutMs: 20 + pick(50) });
    if (action === 2)
      return client.callTool('slow', { ms: 40 }, { signal: AbortSignal.timeout(1 + pick(60)) });
    if (action === 3) return client.callTool('changed', {});
    if (action === 4) return client.listTools();
    const text = `m${count.calls}`;
    const { content } = await client.callTool('echo', { text }, { repeatable: pick(2) === 0 });
    expect(content).toEqual([{ type: 'text', text }]);
    return content;
  };
  const worker = async () => {
    while (performance.now() < until) {
      count.calls++;
      try {
        await using lease = await pool.acquire(configs[pick(configs.length)]!);
        for (const { pid } of pool.inspect()) if (pid !== undefined) pids.add(pid);
        await act(lease.value);
        count.answered++;
      } catch (error) {
        if (!PatchbayError.isInstance(error)) throw error;
        count.refused.set(error.code, (count.refused.get(error.code) ?? 0) + 1);
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, worker));
  await pool.close();

  console.log({ ...count, refused: Object.fromEntries(count.refused), processes: pids.size });
  expect(count.answered).toBeGreaterThan(count.calls / 2);
  expect([...count.refused.keys()].filter((code) => !EXPECTED.has(code))).toEqual([]);
  expect([...pids].filter((pid) => groupMembers(pid) > 0)).toEqual([]);
  expect(process.listeners('exit').filter(({ name }) => name === '')).toEqual([]);
});

const EXPECTED: ReadonlySet<string> = new Set([
  'outcome-unknown',
  'timeout',
  'aborted',
  'connection-lost',
  'connect-failed',
  'unavailable',
]);
