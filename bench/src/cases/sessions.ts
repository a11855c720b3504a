import { createMCPClient } from '@ai-sdk/mcp';
import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { defineTool } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';

import type { Arm, Case } from '../case.ts';
import { heap } from '../heap.ts';
import { HttpServer } from './calls.ts';

const SESSIONS = 100;
/** Capabilities of everybody, and tools of each, in the case about memory. */
const SOURCES = 20;
const TOOLS = 50;
/** So many more sessions are measured: what one costs is too little to be measured alone. */
const MANY = 2_000;

/** From nothing until each of a hundred sessions has its tools, and down again. */
function cold(name: string, open: (url: string) => Promise<readonly boolean[]>): Arm {
  const http = new HttpServer('event stream');
  let tools: readonly boolean[] = [];
  return {
    name,
    setup: () => http.start(),
    run: async () => {
      tools = await open(http.url);
    },
    answer: async () => tools,
    teardown: () => http.stop(),
  };
}

export const manySessions: Case = {
  name: `${SESSIONS} sessions on one HTTP server, cold until the first tool list`,
  unit: 'ms',
  warmUp: 1,
  arms: [
    cold('patchbay', async (url) => {
      await using connections = new ConnectionPool();
      // One tool of this server can only be run as a task: that is said once, and not what is measured.
      await using registry = new ExtensionRegistry({ onProblem: () => undefined });
      registry.register(new McpServerCapability({ id: 'all', server: { url }, connections }));
      const views = Array.from({ length: SESSIONS }, (_, i) => registry.view({ session: `${i}` }));
      const compiled = await Promise.all(views.map((view) => view.compile()));
      return compiled.map(({ tools }) => tools.some(({ id }) => id.name === 'echo'));
    }),
    cold('@ai-sdk/mcp, a client for each', async (url) =>
      Promise.all(
        Array.from({ length: SESSIONS }, async () => {
          const client = await createMCPClient({ transport: { type: 'http', url } });
          const tools = await client.tools();
          await client.close();
          return 'echo' in tools;
        }),
      ),
    ),
  ],
  goals: [
    {
      arm: 'patchbay',
      against: '@ai-sdk/mcp, a client for each',
      of: 'value',
      atMost: 1 / 7,
    },
  ],
};

/** A session that looks at capabilities of everybody costs what is its own, not what they offer. */
export const sessionMemory: Case = {
  name: `a session that sees ${SOURCES * TOOLS} tools of everybody: memory`,
  unit: 'KB',
  once: true,
  arms: [
    {
      name: 'patchbay',
      run: async () => {
        await using registry = new ExtensionRegistry();
        let listings = 0;
        for (let i = 0; i < SOURCES; i++) {
          const id = `source${i}`;
          registry.register({
            id,
            tools: async () => {
              listings++;
              return Array.from({ length: TOOLS }, (_, n) =>
                defineTool({ capability: id, name: `tool${n}`, call: () => n }),
              );
            },
          });
        }
        const open = async (from: number, to: number) => {
          const held = [];
          for (let i = from; i < to; i++) {
            const view = registry.view({ session: `${i}` });
            await view.compile();
            held.push(view);
          }
          return held;
        };
        const first = await open(0, SESSIONS);
        const before = heap();
        const more = await open(SESSIONS, SESSIONS + MANY);
        const grown = heap() - before;
        if (listings !== SOURCES || first.length + more.length !== SESSIONS + MANY)
          throw new Error(`${listings} listings for ${SOURCES} sources.`);
        return { value: grown / MANY / 1024 };
      },
    },
  ],
  goals: [{ arm: 'patchbay', of: 'value', atMost: 10 }],
};
