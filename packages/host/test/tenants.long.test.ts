import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { createHost, type Agent, type SubAgent } from '@patchbay/host';
import { PatchbayError, type Problem } from '@patchbay/protocols';
import { expect, it } from 'vitest';

import { startTenantHttp } from './fixtures/tenants/server.mjs';

/** How long it goes on, in seconds. */
const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 60);
const SESSIONS = 200;
const TENANTS = ['acme', 'globex', 'initech', 'umbrella'];
const SERVERS = 10;

/** What may become of a call among kills, edits, interrupts and ends. */
const EXPECTED: ReadonlySet<string> = new Set([
  'aborted',
  'closed',
  'connect-failed',
  'connection-lost',
  // A skill that is activated in the middle of its edit: the file is empty then.
  'not-found',
  'outcome-unknown',
  'pool-exhausted',
  'source-failed',
  'timeout',
  'tool-unavailable',
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

it(`keeps ${TENANTS.length} tenants apart in ${SESSIONS} sessions on ${SERVERS} servers for ${SECONDS} s, and leaves nothing (SEED=${seed})`, async () => {
  const before = resources();
  const pick = random(seed);
  const root = await mkdtemp(join(tmpdir(), 'patchbay-stress-'));
  const heard: string[] = [];
  const hear = (problem: unknown) => void heard.push(String(problem));
  process.on('warning', hear).on('unhandledRejection', hear).on('uncaughtException', hear);

  const https = await Promise.all(Array.from({ length: SERVERS / 2 }, startTenantHttp));
  const program = fileURLToPath(new URL('fixtures/tenants/server.mjs', import.meta.url));
  const writeConfig = (off: number | undefined) => {
    const entries = Array.from({ length: SERVERS }, (_, i) => [
      `s${i}`,
      {
        ...(i < SERVERS / 2
          ? { url: https[i]!.url }
          : { command: process.execPath, args: [program, String(i)] }),
        disabled: i === off,
      },
    ]);
    const agents = { coder: { tools: { exclude: ['s1__slow'] } } };
    return writeFile(
      join(root, 'patchbay.yaml'),
      JSON.stringify({ mcp_servers: Object.fromEntries(entries), agents }),
    );
  };
  const writeSkill = async (tenant: string) => {
    const folder = join(root, 'skills', tenant, `${tenant}-skill`);
    await mkdir(folder, { recursive: true });
    const text = `---\nname: ${tenant}-skill\ndescription: Of ${tenant} ${pick(1e6)}.\n---\n${tenant} ${pick(1e6)}\n`;
    await writeFile(join(folder, 'SKILL.md'), text);
  };
  await writeConfig(undefined);
  for (const tenant of TENANTS) await writeSkill(tenant);

  const problems = new Map<string, number>();
  const add = (map: Map<string, number>, key: string) => map.set(key, (map.get(key) ?? 0) + 1);
  const host = await createHost({
    cwd: root,
    home: false,
    env: {},
    sessionIdleMs: 20,
    onProblem: ({ code }: Problem) => add(problems, code),
    pool: { backOff: { firstMs: 5, maxMs: 50 }, maxClients: 24 },
  });
  const registeredBefore = host.registry.inspect().length;

  const count = { opened: 0, spawned: 0, calls: 0, answered: 0, interrupts: 0, kills: 0, edits: 0 };
  const refused = new Map<string, number>();
  const foreign: string[] = [];
  const pids = new Set<number>();
  const ids = new Set<string>();
  const heapNow = () => Math.round(process.memoryUsage().heapUsed / 1e6);
  const heap: number[] = [];
  const until = performance.now() + SECONDS * 1_000;
  const isOver = () => performance.now() >= until;

  /** Anything that may end in one of the expected ways. */
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!PatchbayError.isInstance(error)) throw error;
      add(refused, error.code);
    }
  };
  const use = (agent: Agent, tenant: string) =>
    attempt(async () => {
      const compiled = await agent.view().compile({ deadlineMs: 10_000 });
      for (const { name } of compiled.skills)
        if (!name.startsWith(tenant)) foreign.push(`${tenant} sees the skill ${name}`);
      for (const { definition } of compiled.tools)
        if (agent.name.startsWith('coder') && definition.name === 's1__slow')
          foreign.push(`${agent.name} sees what is taken from it`);
      if (pick(4) === 0) await compiled.callTool('activate_skill', { name: `${tenant}-skill` });
      const tools = compiled.tools.filter(({ id }) => id.capability !== 'skills');
      const tool = tools[pick(Math.max(1, tools.length))];
      if (tool === undefined) return;
      count.calls++;
      const { content } = await compiled.callTool(tool.definition.name, { tenant, ms: pick(80) });
      const { text } = content[0] as { text: string };
      count.answered++;
      const { tenant: whose } = JSON.parse(text) as { tenant?: string };
      if (whose !== tenant) foreign.push(`${tenant} got what is ${whose}'s`);
    });
  const spawn = async (agent: Agent, tenant: string, depth: number): Promise<void> => {
    count.spawned++;
    const interrupt = new AbortController();
    if (pick(3) === 0) {
      void delay(pick(60)).then(() => {
        count.interrupts++;
        interrupt.abort();
      });
    }
    await attempt(async () => {
      const sub: SubAgent = await agent.spawn(`sub${pick(3)}`, {
        signal: interrupt.signal,
        ...(pick(2) === 0 ? {} : { tools: { include: [`s${pick(SERVERS)}__*`, 'own__*'] } }),
        ...(pick(2) === 0
          ? {}
          : { servers: { own: { url: `${https[0]!.url}?tenant=${tenant}` } } }),
      });
      const work: Promise<unknown>[] = [use(sub, tenant), use(sub, tenant)];
      if (depth < 2 && pick(2) === 0) work.push(spawn(sub, tenant, depth + 1));
      if (pick(3) === 0) await delay(pick(30));
      else await Promise.all(work);
      // Some are left to whoever started them.
      if (pick(4) > 0) await sub.close();
      await Promise.all(work);
    });
  };
  const session = async (slot: number) => {
    const tenant = TENANTS[slot % TENANTS.length]!;
    for (let round = 0; !isOver(); round++) {
      await delay(pick(400));
      const id = `${tenant}-${slot}-${pick(2)}`;
      ids.add(id);
      count.opened++;
      const claim = await host.openSession(id, {
        identity: { id: tenant },
        skills: [join(root, 'skills', tenant)],
      });
      const agent = claim.agent(pick(2) === 0 ? 'coder' : 'writer');
      const work = [use(agent, tenant)];
      for (let i = pick(3); i > 0; i--) work.push(spawn(agent, tenant, 0));
      if (pick(4) > 0) await Promise.all(work);
      await claim.close();
      if (pick(20) === 0) await attempt(() => host.registry.close({ session: id }));
      await Promise.all(work);
    }
  };
  const trouble = async () => {
    for (let turn = 0; !isOver(); turn++) {
      await delay(200 + pick(300));
      for (const { pid } of host.inspect().connections) if (pid !== undefined) pids.add(pid);
      const alive = host.inspect().connections.flatMap(({ pid }) => pid ?? []);
      const victim = alive[pick(Math.max(1, alive.length))];
      if (victim !== undefined && pick(2) === 0) {
        count.kills++;
        try {
          process.kill(victim, 'SIGKILL');
        } catch {
          // It ended in the same moment.
        }
      }
      if (pick(6) === 0) {
        count.kills++;
        https[pick(https.length)]!.die();
      }
      if (pick(2) === 0) {
        count.edits++;
        await writeSkill(TENANTS[pick(TENANTS.length)]!);
      }
      if (pick(8) === 0) {
        count.edits++;
        await writeConfig(pick(2) === 0 ? undefined : pick(SERVERS));
      }
      if (turn % 5 === 0) {
        globalThis.gc?.();
        heap.push(heapNow());
      }
    }
  };

  await Promise.all([trouble(), ...Array.from({ length: SESSIONS }, (_, slot) => session(slot))]);
  // Every session ends by itself once nobody uses it.
  await expect.poll(() => host.inspect().sessions, { timeout: 20_000, interval: 20 }).toEqual([]);
  await writeConfig(undefined);
  await host.reload();
  const registeredAfter = host.registry.inspect().length;
  const keys = [...ids].flatMap((id) =>
    Object.keys(host.registry.state({ session: id }).snapshot()),
  );
  const connections = host.inspect().connections.length;
  await host.close();
  const served = https.map((server) => server.sessions());
  await Promise.all(https.map((server) => server.close()));
  await rm(root, { recursive: true });

  const third = Math.ceil(heap.length / 3);
  const mean = (values: readonly number[]) =>
    Math.round(values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length));
  const [early, late] = [mean(heap.slice(third, 2 * third)), mean(heap.slice(-third))];
  console.log(
    JSON.stringify({
      seed,
      seconds: SECONDS,
      ...count,
      sessionIds: ids.size,
      foreign: foreign.length,
      refused: Object.fromEntries(refused),
      problems: Object.fromEntries(problems),
      processes: pids.size,
      connections,
      served,
      registrations: [registeredBefore, registeredAfter],
      stateKeys: keys.length,
      heapMb: [early, late],
    }),
  );
  process.off('warning', hear).off('unhandledRejection', hear).off('uncaughtException', hear);

  expect(foreign).toEqual([]);
  expect(heard).toEqual([]);
  expect([...refused.keys()].filter((code) => !EXPECTED.has(code))).toEqual([]);
  expect(count.answered).toBeGreaterThan(count.calls / 2);
  expect(keys).toEqual([]);
  expect(registeredAfter).toBe(registeredBefore);
  // What was told to end has ended a moment later.
  const end = performance.now() + 5_000;
  while (leftSince(before).length > 0 && performance.now() < end)
    await new Promise((resolve) => setImmediate(resolve));
  expect(leftSince(before)).toEqual([]);
  expect([...pids].filter((pid) => isAlive(pid))).toEqual([]);
  // Too busy a machine to have taken samples says nothing about memory.
  expect(heap.length, 'samples of the heap').toBeGreaterThan(4);
  // The middle of the time against its end: what is kept for each session or sub-agent would show.
  expect(late).toBeLessThan(early * 1.5 + 20);
});

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** What keeps the program going, what listens to it, and what it started. */
function resources(): readonly string[] {
  const listeners = process
    .eventNames()
    .flatMap((name) => process.listeners(name as 'exit').map(() => `listener: ${String(name)}`));
  const children = execFileSync('ps', ['-e', '-o', 'ppid=,pid=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter(
      (line) => Number(line.trim().split(/\s+/u)[0]) === process.pid && !line.includes('ps -e'),
    )
    .map((line) => `process: ${line.trim()}`);
  return [...process.getActiveResourcesInfo(), ...listeners, ...children];
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
