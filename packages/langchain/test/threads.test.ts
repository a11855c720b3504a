import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import {
  Command,
  END,
  MemorySaver,
  MessagesValue,
  START,
  StateGraph,
  StateSchema,
} from '@langchain/langgraph';
import { langchain } from '@patchbay/langchain';
import { ExtensionRegistry } from '@patchbay/registry';
import { build } from 'esbuild';
import { AIMessage, createAgent, fakeModel } from 'langchain';
import { describe, expect, it, onTestFinished } from 'vitest';

import { ask, capability, outcomes, script } from './script.ts';

const here = dirname(fileURLToPath(import.meta.url));

/** The program as a file that Node runs, beside the packages that it needs. */
async function program(): Promise<(half: 'ask' | 'resume') => Promise<Half>> {
  const folder = await mkdtemp(join(here, '../node_modules/.resume-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const outfile = join(folder, 'program.mjs');
  await build({
    entryPoints: [join(here, 'fixtures/resume/program.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    conditions: ['@patchbay/source'],
    external: ['langchain', '@langchain/*', 'zod'],
  });
  const thread = join(folder, 'thread');
  return async (half) => {
    const { stdout } = await promisify(execFile)(process.execPath, [outfile, half, thread]);
    return JSON.parse(stdout) as Half;
  };
}

interface Half {
  readonly asked: number;
  readonly said: string;
  readonly turns: readonly string[];
  readonly outcomes: readonly string[];
}

describe('a run that waits for a person', () => {
  it('is resumed by another process: in the same turn, what it hides hidden, the call made once', async () => {
    const run = await program();
    const first = await run('ask');
    expect(first).toMatchObject({ asked: 1, outcomes: [] });
    const second = await run('resume');
    expect(second).toMatchObject({ asked: 0, said: 'done' });
    expect(second.outcomes).toEqual([
      'success:paid 5 in resume',
      expect.stringMatching(/^error:Error: .*may not be used/),
    ]);
    expect(new Set([...first.turns, ...second.turns]).size).toBe(1);
  });
});

describe('an agent as a node of a graph', () => {
  const graphOf = (agent: { readonly graph: unknown }) =>
    new StateGraph(new StateSchema({ messages: MessagesValue }))
      .addNode('agent', agent.graph as never)
      .addEdge(START, 'agent')
      .addEdge('agent', END)
      .compile({ checkpointer: new MemorySaver() }) as unknown as Pick<
      ReturnType<typeof createAgent>,
      'invoke'
    >;

  it('has the tools of its view, and of the view that a run brings', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { who: () => 'everybody' }));
    registry.register(capability('c', { who: () => 'A' }), { session: 'A' });
    const model = fakeModel();
    for (let at = 0; at < 2; at++)
      model
        .respondWithTools([{ name: 'c__who', args: {}, id: `${at}` }])
        .respond(new AIMessage('done'));
    const graph = graphOf(createAgent({ model, ...langchain(registry.view()) }));
    const run = async (thread: string, context: object = {}) =>
      outcomes(await graph.invoke(ask(), { configurable: { thread_id: thread }, context }));
    expect(await run('1')).toEqual(['success:everybody']);
    expect(await run('2', { patchbay: registry.view({ session: 'A' }) })).toEqual(['success:A']);
  });

  it('asks a person through the graph, and goes on with the answer', async () => {
    await using registry = new ExtensionRegistry({ approval: () => 'ask' });
    const paid: unknown[] = [];
    registry.register(capability('c', { pay: ({ x }) => `paid ${String(paid.push(x))}` }));
    const model = script([{ name: 'c__pay', args: { x: 5 } }]);
    const graph = graphOf(createAgent({ model, ...langchain(registry.view()) }));
    const config = { configurable: { thread_id: 't' } };
    const waiting = await graph.invoke(ask(), config);
    expect(waiting.__interrupt__).toHaveLength(1);
    expect(paid).toEqual([]);
    const resume = new Command({ resume: { decisions: [{ type: 'approve' }] } });
    expect(outcomes(await graph.invoke(resume, config))).toEqual(['success:paid 1']);
    expect(paid).toEqual([5]);
  });
});
