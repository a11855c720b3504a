import { createMCPClient, type MCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { loadMcpTools, MultiServerMCPClient } from '@langchain/mcp-adapters';
import { aiSdk } from '@patchbay/ai-sdk';
import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { ExtensionRegistry } from '@patchbay/registry';
import { asSchema, type ToolSet } from 'ai';

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

type Built = { readonly tools: number; readonly properties?: number };

/** So many properties do schemas show: reading them all is what a request with every tool does. */
const propertiesOf = (schemas: readonly unknown[]): number =>
  schemas.reduce<number>((sum, schema) => {
    const { properties = {} } = schema as { readonly properties?: object };
    return sum + Object.keys(properties).length;
  }, 0);

const schemasOf = (tools: ToolSet): readonly unknown[] =>
  Object.values(tools).map((tool) => asSchema(tool.inputSchema).jsonSchema);

/**
 * From a connection that is there to the tools of the framework. Ours make a schema when it is read, as what is deferred or
 * not active never is: so there is a case in which all of them are read as well.
 */
function firstBuild(tools: number, of: { output?: boolean; read?: boolean } = {}): Case {
  const { output = false, read = false } = of;
  const server = plainServer({ tools, output });
  const connections = new ConnectionPool();
  let client: MCPClient;
  let adapters: MultiServerMCPClient;
  const built = new Map<string, Built>();
  const note = (name: string, count: number, schemas: () => readonly unknown[]) => {
    const all = read ? schemas() : undefined;
    built.set(name, { tools: count, ...(all && { properties: propertiesOf(all) }) });
  };
  const answer = (name: string) => async () => built.get(name);
  const arms: readonly Arm[] = [
    {
      name: 'patchbay',
      setup: async () => (await connections.acquire(server)).close(),
      run: async () => {
        const { registry, extensions } = registryOver(server, connections);
        const made = await extensions.toolsForMessages();
        note('patchbay', Object.keys(made).length, () => schemasOf(made));
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
      run: async () => {
        const made = await client.tools();
        note('@ai-sdk/mcp', Object.keys(made).length, () => schemasOf(made));
      },
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
        const made = await loadMcpTools('all', connected!);
        note('@langchain/mcp-adapters', made.length, () => made.map(({ schema }) => schema));
      },
      answer: answer('@langchain/mcp-adapters'),
      teardown: () => adapters.close(),
    },
  ];
  const goal = { arm: 'patchbay', of: 'value' } as const;
  const what = `${output ? ' with output schemas' : ''}, first build`;
  return {
    name: `${tools.toLocaleString('en')} tools${what}${read ? ', every schema read' : ''}`,
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
  firstBuild(tools),
  firstBuild(tools, { read: true }),
  firstBuild(tools, { output: true }),
  rebuild(tools),
  relists(tools, times),
];
