import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { ExtensionRegistry } from '@patchbay/registry';

import type { Arm, Case, Cost } from '../case.ts';
import { childrenMegabytes, FloorClient, plainServer, Starts } from '../plain-server.ts';

/** What was opened: the tools that each session, or server, has to offer. */
interface Opened {
  readonly tools: readonly boolean[];
  readonly close: () => Promise<void>;
}

type Open = (count: number, starts: string) => Promise<Opened>;

async function open(
  servers: readonly { readonly id: string; readonly server: object }[],
  sessions: number,
): Promise<Opened> {
  const connections = new ConnectionPool({ maxClients: servers.length });
  const registry = new ExtensionRegistry();
  for (const { id, server } of servers)
    registry.register(
      new McpServerCapability({
        id,
        server: server as ReturnType<typeof plainServer>,
        connections,
      }),
    );
  const views = Array.from({ length: sessions }, (_, i) => registry.view({ session: `${i}` }));
  const compiled = await Promise.all(views.map((view) => view.compile()));
  return {
    tools: compiled.flatMap(({ tools }) =>
      servers.map(({ id }) =>
        tools.some((tool) => tool.id.capability === id && tool.id.name === 'echo'),
      ),
    ),
    close: async () => {
      await registry.close();
      await connections.close();
    },
  };
}

const SESSIONS: Readonly<Record<string, Open>> = {
  patchbay: (count, starts) => open([{ id: 'all', server: plainServer({ starts }) }], count),
  '@ai-sdk/mcp, a client for each': async (count, starts) => {
    const clients = await Promise.all(
      Array.from({ length: count }, () =>
        createMCPClient({ transport: new Experimental_StdioMCPTransport(plainServer({ starts })) }),
      ),
    );
    const tools = await Promise.all(clients.map((client) => client.tools()));
    return {
      tools: tools.map((all) => 'echo' in all),
      close: async () => void (await Promise.all(clients.map((client) => client.close()))),
    };
  },
};

/** `wait`: milliseconds that each takes to start, beside its work. */
const openServers = (wait: number): Readonly<Record<string, Open>> => {
  const servers = (count: number, starts: string) =>
    Array.from({ length: count }, (_, i) => ({
      id: `s${i}`,
      server: plainServer({ id: `s${i}`, tools: 5, starts, wait }),
    }));
  return {
    patchbay: (count, starts) => open(servers(count, starts), 1),
    floor: async (count, starts) => {
      const clients = servers(count, starts).map(({ server }) => new FloorClient(server));
      const lists = await Promise.all(
        clients.map(async (client) => {
          await client.initialize();
          return (await client.request('tools/list')) as {
            readonly tools: readonly { name: string }[];
          };
        }),
      );
      return {
        tools: lists.map(({ tools }) => tools.some(({ name }) => name === 'echo')),
        close: async () => void (await Promise.all(clients.map((client) => client.close()))),
      };
    },
    '@langchain/mcp-adapters': async (count, starts) => {
      const client = new MultiServerMCPClient({
        prefixToolNameWithServerName: true,
        mcpServers: Object.fromEntries(
          servers(count, starts).map(({ id, server }) => [id, { transport: 'stdio', ...server }]),
        ),
      });
      const names = (await client.getTools()).map(({ name }) => name);
      return {
        tools: servers(count, starts).map(({ id }) => names.includes(`${id}__echo`)),
        close: () => client.close(),
      };
    },
  };
};

/** From nothing until everything is listed; taken down outside of the time. `expected`: starts of a run. */
function cold(name: string, begin: Open, count: number, expected: number, memory = false): Arm {
  const starts = new Starts();
  let runs = 0;
  let tools: readonly boolean[] = [];
  return {
    name,
    setup: () => starts.open(),
    run: async (): Promise<Cost> => {
      const cpuBefore = process.cpuUsage();
      const before = performance.now();
      const opened = await begin(count, starts.file);
      const value = performance.now() - before;
      const { user, system } = process.cpuUsage(cpuBefore);
      const megabytes = memory ? await childrenMegabytes() : 0;
      ({ tools } = opened);
      await opened.close();
      const started = await starts.count();
      if (started !== ++runs * expected)
        throw new Error(`${name}: ${started} starts in ${runs} runs, and not ${expected} in each.`);
      return memory ? { value: megabytes } : { value, cpu: (user + system) / 1000 };
    },
    answer: async () => tools,
    teardown: () => starts.close(),
  };
}

/** One server for all of them: one process. */
export function sessionsOverStdio(sessions: number): readonly Case[] {
  const [own, theirs] = Object.entries(SESSIONS) as [[string, Open], [string, Open]];
  const arms = (memory: boolean) => [
    cold(own[0], own[1], sessions, 1, memory),
    cold(theirs[0], theirs[1], sessions, sessions, memory),
  ];
  const goal = { arm: own[0], against: theirs[0], of: 'value' } as const;
  return [
    {
      name: `${sessions} sessions on one stdio server, cold until the first tool list`,
      unit: 'ms',
      warmUp: 1,
      rounds: 3,
      arms: arms(false),
      goals: [{ ...goal, atMost: 1 / 40 }],
    },
    {
      name: `${sessions} sessions on one stdio server: memory of its processes`,
      unit: 'MB',
      once: true,
      arms: arms(true),
      goals: [{ ...goal, atMost: 1 / 35 }],
    },
  ];
}

/** Each of them is started once, and not one after the other. The goals are for servers that mostly wait when they start. */
export function serversAtStart(count: number, wait: number): Case {
  const floor = { arm: 'patchbay', against: 'floor', of: 'value', atMost: 1.15 } as const;
  const peer = { ...floor, against: '@langchain/mcp-adapters', atMost: 1 / 13 };
  return {
    name: `${count} different stdio servers at start${wait === 0 ? '' : `, each waits for ${wait} ms`}`,
    unit: 'ms',
    warmUp: wait === 0 ? 1 : 0,
    rounds: wait === 0 ? 5 : 3,
    arms: Object.entries(openServers(wait)).map(([name, begin]) => cold(name, begin, count, count)),
    goals: wait === 0 ? [floor] : [floor, peer],
  };
}
