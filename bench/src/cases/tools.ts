import { createMCPClient, type MCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { loadMcpTools, MultiServerMCPClient } from '@langchain/mcp-adapters';
import { aiSdk } from '@patchbay/ai-sdk';
import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { ExtensionRegistry } from '@patchbay/registry';

import type { Arm, Case } from '../case.ts';
import { heap } from '../heap.ts';
import { plainServer } from '../plain-server.ts';

type Server = ReturnType<typeof plainServer>;

/** A fresh registry over a pool that is connected already. */
function registryOver(server: Server, connections: ConnectionPool) {
  const registry = new ExtensionRegistry();
  registry.register(new McpServerCapability({ id: 'all', server, connections }));
  return { registry, extensions: aiSdk(registry.view()), view: registry.view() };
}

/** From a connection that is there to the tools of the framework. */
function firstBuild(tools: number, output: boolean): Case {
  const server = plainServer({ tools, output });
  const connections = new ConnectionPool();
  let client: MCPClient;
  let adapters: MultiServerMCPClient;
  const built = new Map<string, number>();
  const answer = (name: string) => async () => built.get(name);
  const arms: readonly Arm[] = [
    {
      name: 'patchbay',
      setup: async () => (await connections.acquire(server)).close(),
      run: async () => {
        const { registry, extensions } = registryOver(server, connections);
        built.set('patchbay', Object.keys(await extensions.toolsForMessages()).length);
        await registry.close();
      },
      answer: answer('patchbay'),
      teardown: () => connections.close(),
    },
    {
      name: '@ai-sdk/mcp',
      setup: async () => {
        client = await createMCPClient({ transport: new Experimental_StdioMCPTransport(server) });
      },
      run: async () => void built.set('@ai-sdk/mcp', Object.keys(await client.tools()).length),
      answer: answer('@ai-sdk/mcp'),
      teardown: () => client.close(),
    },
    {
      name: '@langchain/mcp-adapters',
      setup: async () => {
        adapters = new MultiServerMCPClient({
          mcpServers: { all: { transport: 'stdio', ...server } },
        });
        await adapters.initializeConnections();
      },
      run: async () => {
        const connected = await adapters.getClient('all');
        built.set('@langchain/mcp-adapters', (await loadMcpTools('all', connected!)).length);
      },
      answer: answer('@langchain/mcp-adapters'),
      teardown: () => adapters.close(),
    },
  ];
  const goal = { arm: 'patchbay', of: 'value' } as const;
  return {
    name: `${tools.toLocaleString('en')} tools${output ? ' with output schemas' : ''}, first build`,
    unit: 'ms',
    arms,
    goals: [
      { ...goal, against: '@ai-sdk/mcp', atMost: 0.85 },
      { ...goal, against: '@langchain/mcp-adapters', atMost: output ? 1 / 12 : 0.45 },
    ],
  };
}

/** Nothing has changed since the last time. */
function rebuild(tools: number): Case {
  const server = plainServer({ tools });
  const connections = new ConnectionPool();
  const { registry, extensions } = registryOver(server, connections);
  let client: MCPClient;
  let ours = {};
  let theirs = {};
  return {
    name: `${tools.toLocaleString('en')} tools, rebuild without a change`,
    unit: 'ms',
    arms: [
      {
        name: 'patchbay',
        run: async () => void (ours = await extensions.toolsForMessages()),
        answer: async () => Object.keys(ours).length,
        teardown: async () => {
          await registry.close();
          await connections.close();
        },
      },
      {
        name: '@ai-sdk/mcp',
        setup: async () => {
          client = await createMCPClient({ transport: new Experimental_StdioMCPTransport(server) });
        },
        run: async () => void (theirs = await client.tools()),
        answer: async () => Object.keys(theirs).length,
        teardown: () => client.close(),
      },
    ],
    goals: [
      { arm: 'patchbay', of: 'value', atMost: 0.2 },
      { arm: 'patchbay', against: '@ai-sdk/mcp', of: 'value', atMost: 1 / 300 },
    ],
  };
}

/** The server says again and again that its list is another one, and it never is. */
function relists(tools: number, times: number): Case {
  return {
    name: `heap after ${times} re-lists of ${tools.toLocaleString('en')} tools`,
    unit: 'KB',
    once: true,
    arms: [
      {
        name: 'patchbay',
        run: async () => {
          await using connections = new ConnectionPool();
          const { registry, view, extensions } = registryOver(plainServer({ tools }), connections);
          await view.compile();
          const changes = view.changes()[Symbol.asyncIterator]();
          const relist = async () => {
            const changed = changes.next();
            await (await view.compile()).callTool('all__relist', {});
            await changed;
            await extensions.toolsForMessages();
          };
          for (let i = 0; i < 20; i++) await relist();
          const before = heap();
          for (let i = 0; i < times; i++) await relist();
          const grown = heap() - before;
          await registry.close();
          return { value: Math.max(0, grown) / 1024 };
        },
      },
    ],
    // What a collection leaves differs by some.
    goals: [{ arm: 'patchbay', of: 'value', atMost: 256 }],
  };
}

export const manyTools = (tools: number, times: number): readonly Case[] => [
  firstBuild(tools, false),
  firstBuild(tools, true),
  rebuild(tools),
  relists(tools, times),
];
