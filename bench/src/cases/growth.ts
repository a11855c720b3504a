import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { changeSource, defineTool, type Capability } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { localSkills } from '@patchbay/skills/node';

import type { Case } from '../case.ts';
import { plainServer } from '../plain-server.ts';
import { exponent } from '../statistics.ts';
import { makeTree, type Tree } from './watching.ts';

const FACTORS = [1, 10, 100] as const;

/** Work of a size, prepared; what `run` does is what is timed. */
interface Sized {
  readonly run: () => Promise<number>;
  /** Done before each `run`, and not timed. With it a `run` adds to what the runs before have left, and is not repeated. */
  readonly before?: () => Promise<void>;
  readonly close?: () => Promise<void>;
}

/**
 * Does the same work in three sizes. One that grows with its work has the exponent 1.
 *
 * A smaller size is done as often as makes it as much work as the largest: 100 sessions alone end before the collector
 * comes for the first time, and so would seem to cost less than their share of 10,000.
 */
function growth(what: string, base: number, prepare: (size: number) => Promise<Sized>): Case {
  const sizes = FACTORS.map((factor) => base * factor);
  let prepared: readonly Sized[] = [];
  return {
    name: `growth with ${sizes.map((size) => size.toLocaleString('en')).join(', ')} ${what}`,
    unit: '(exponent)',
    warmUp: 1,
    rounds: 5,
    arms: [
      {
        name: 'patchbay',
        setup: async () => void (prepared = await Promise.all(sizes.map(prepare))),
        run: async () => {
          const costs: number[] = [];
          for (const [i, { before, run }] of prepared.entries()) {
            await before?.();
            const times = before ? 1 : sizes.at(-1)! / sizes[i]!;
            const start = performance.now();
            for (let n = 0; n < times; n++) {
              const done = await run();
              if (done !== sizes[i]) throw new Error(`${done} of ${sizes[i]} ${what}.`);
            }
            costs.push((performance.now() - start) / times);
          }
          return { value: exponent(sizes, costs) };
        },
        teardown: async () => {
          for (const { close } of prepared) await close?.();
        },
      },
    ],
    goals: [{ arm: 'patchbay', of: 'value', atMost: 1.1 }],
  };
}

const toolsOf = (id: string, count: number) =>
  Array.from({ length: count }, (_, n) =>
    defineTool({ capability: id, name: `tool${n}`, call: () => n }),
  );

const source = (id: string, count: number): Capability => {
  const definitions = toolsOf(id, count);
  return { id, tools: async () => definitions };
};

/** A call of a server over stdio through a view; 1 where it succeeded. */
async function echoServer(): Promise<{
  readonly call: () => Promise<number>;
  readonly close: () => Promise<void>;
}> {
  const connections = new ConnectionPool();
  const registry = new ExtensionRegistry();
  registry.register(new McpServerCapability({ id: 'all', server: plainServer(), connections }));
  const { callTool } = await registry.view().compile();
  return {
    call: async () => ((await callTool('all__echo', { message: 'hi' })).isError === true ? 0 : 1),
    close: async () => {
      await registry.close();
      await connections.close();
    },
  };
}

/** How the cost of the main kinds of work grows with them. `base`: the smallest size. */
export const growths = (base: number): readonly Case[] => [
  growth('calls', base, async (size) => {
    const { call, close } = await echoServer();
    const oneByOne = async (count: number) => {
      let done = 0;
      for (let i = 0; i < count; i++) done += await call();
      return done;
    };
    return {
      // The first calls after a rest cost a third of the later ones, also those of a hand-written loop: the system moves
      // the two programs apart only after a while, and from then on has to wake them.
      before: async () => void (await oneByOne(base * 30)),
      run: () => oneByOne(size),
      close,
    };
  }),
  // Nobody has ten thousand under way; what they hold meanwhile (5 KB each) would be moved by the collector.
  growth('calls at once', Math.ceil(base / 10), async (size) => {
    const { call, close } = await echoServer();
    return {
      run: async () => {
        const done = await Promise.all(Array.from({ length: size }, call));
        return done.reduce((sum, one) => sum + one, 0);
      },
      close,
    };
  }),
  growth('tools', base, async (size) => ({
    run: async () => {
      await using registry = new ExtensionRegistry();
      registry.register(source('all', size));
      return (await registry.view().compile()).tools.length;
    },
  })),
  growth('skills', base, async (size) => {
    const tree: Tree = await makeTree(size);
    return {
      run: async () => {
        const skills = localSkills({ id: 'bench', folder: tree.groups });
        return (await skills.listSkills({ report: () => undefined } as never)).length;
      },
      close: () => tree.remove(),
    };
  }),
  growth('sessions', base, async (size) => ({
    run: async () => {
      await using registry = new ExtensionRegistry();
      registry.register(source('all', 10));
      let done = 0;
      for (let i = 0; i < size; i++)
        if ((await registry.view({ session: `${i}` }).compile()).tools.length === 10) done++;
      return done;
    },
  })),
  growth('sessions that each end while all others are open', base, async (size) => ({
    run: async () => {
      await using registry = new ExtensionRegistry();
      const tools = toolsOf('all', 10);
      // It reads for whom it is asked, so that what it says is kept for each session.
      registry.register({
        id: 'all',
        tools: async ({ scope }) => (scope.session === undefined ? [] : tools),
      });
      const sessions = Array.from({ length: size }, (_, i) => `${i}`);
      for (const session of sessions) await registry.view({ session }).compile();
      for (const session of sessions) await registry.close({ session });
      return sessions.length;
    },
  })),
  growth('agents of a session that each end while all others are open', base, async (size) => ({
    run: async () => {
      await using registry = new ExtensionRegistry();
      const tools = toolsOf('all', 10);
      registry.register({
        id: 'all',
        tools: async ({ scope }) => (scope.agent === undefined ? [] : tools),
      });
      const agents = Array.from({ length: size }, (_, i) => ({
        session: 'of all',
        agent: `coder/researcher#${i}`,
      }));
      for (const agent of agents) await registry.view(agent).compile();
      for (const agent of agents) await registry.close(agent);
      return agents.length;
    },
  })),
  growth(
    'registrations that come and go while somebody listens',
    Math.ceil(base / 10),
    async (size) => ({
      run: async () => {
        await using registry = new ExtensionRegistry();
        const view = registry.view({ session: 'listening' });
        void view.changes()[Symbol.asyncIterator]().next();
        const handles = Array.from({ length: size }, (_, i) => {
          const { revision, subscribe } = changeSource(`source${i}`);
          return registry.register({ ...source(`source${i}`, 1), revision, changes: subscribe });
        });
        const { tools } = await view.compile();
        for (const handle of handles) await handle.close();
        return tools.length;
      },
    }),
  ),
];
