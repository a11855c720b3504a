import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurnOfTheLoop } from 'node:timers/promises';

import { createHost, type Agent } from '@patchbay/host';
import { PatchbayError, type Problem } from '@patchbay/protocols';
import { scriptedServer } from '@patchbay/testkit';
import { expect, it, vi } from 'vitest';

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
const ROUNDS = Number(process.env['ROUNDS'] ?? 8);

it(`whatever goes on, an end at any point settles everything and leaves nothing of what ended (SEED=${seed})`, async () => {
  const pick = random(seed);
  const root = await mkdtemp(join(tmpdir(), 'patchbay-closing-'));
  await mkdir(join(root, '.agents/skills/one'), { recursive: true });
  await writeFile(
    join(root, '.agents/skills/one/SKILL.md'),
    '---\nname: one\ndescription: One.\n---\nOne.\n',
  );
  await using server = await scriptedServer({
    transport: 'http',
    tools: [{ name: 'work' }, { name: 'wait', onCall: 'never' }],
  });
  const entry = server.config as { readonly url: string };
  const problems: Problem[] = [];

  for (let round = 0; round < ROUNDS; round++) {
    const host = await createHost({
      cwd: root,
      home: false,
      env: {},
      watch: false,
      config: { mcp_servers: { s: entry } },
      onProblem: (problem) => void problems.push(problem),
    });
    const session = await host.openSession('s');
    const parent = session.agent('coder');
    const registered = () => host.registry.inspect().map(({ id, scope }) => `${id} ${scope}`);
    const before = registered();
    const codes: string[] = [];
    const during: Promise<void>[] = [];
    const attempt = (work: () => Promise<unknown>) => {
      const settled = (async () => {
        try {
          await work();
        } catch (error) {
          if (!PatchbayError.isInstance(error)) throw error;
          codes.push(error.code);
        }
      })();
      during.push(settled);
    };
    const interrupt = new AbortController();
    const live = (agent: Agent, depth: number): void => {
      attempt(async () => {
        const { callTool } = await agent.view().compile();
        await callTool('activate_skill', { name: 'one' });
        await callTool(pick(2) === 0 ? 's__work' : 's__wait', {});
      });
      attempt(async () => {
        const turn = agent.view().beginTurn({ userText: 'one' });
        await turn.prepare();
        await turn.callTool('s__wait', {});
      });
      attempt(async () => {
        await agent.view().commands.resolve('/one now');
        await agent.view().resources.read('skill://one/SKILL.md');
      });
      attempt(async () => {
        for await (const _ of agent.view().changes());
      });
      if (depth === 2) return;
      for (let i = pick(3); i > 0; i--) {
        attempt(async () => {
          const servers = pick(2) === 0 ? {} : { servers: { own: entry } };
          const below = await agent.spawn('below', servers);
          live(below, depth + 1);
          if (pick(4) === 0) await below.close();
        });
      }
    };

    const sub = await parent.spawn('sub', {
      signal: interrupt.signal,
      servers: { own: entry },
    });
    live(sub, 0);
    // The parent works too, and is not what ends, unless everything does.
    const ends = pick(4);
    const turns = pick(30);
    // Once in the middle of a call for certain, otherwise wherever it happens to be.
    if (round === 0) await vi.waitFor(() => expect(server.executions('wait')).toBeGreaterThan(0));
    else for (let wait = turns; wait > 0; wait--) await nextTurnOfTheLoop();
    const where = `SEED=${seed} round ${round} end ${ends}`;
    if (ends === 0) await sub.close();
    else if (ends === 1) interrupt.abort(new Error('enough'));
    else if (ends === 2) await host.registry.close({ session: 's' });
    else await Promise.all([host.close(), sub.close(), session.close()]);

    if (ends === 2) await sub.close();
    // All that waited is told so; what was begun too late begins nothing.
    for (let known = -1; known !== during.length;) {
      known = during.length;
      await Promise.all(during);
    }
    const allowed = ['aborted', 'closed', 'tool-unavailable', 'not-found'];
    expect(
      codes.filter((code) => !allowed.includes(code)),
      where,
    ).toEqual([]);
    if (ends < 3) {
      expect(registered(), where).toEqual(before);
      expect(session.snapshot(), where).toEqual({});
      expect(host.inspect().sessions, where).toMatchObject([{ running: 0, subAgents: [] }]);
      const { callTool } = await parent.view().compile();
      const { content } = await callTool('s__work', { round });
      expect(content, where).toMatchObject([{ text: JSON.stringify({ round }) }]);
    }
    await host.close();
    expect(registered(), where).toEqual([]);
  }
  expect(problems).toEqual([]);
  await rm(root, { recursive: true });
});
