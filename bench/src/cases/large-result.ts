import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { ConnectionPool } from '@patchbay/connection-pool';

import type { Arm, Case } from '../case.ts';
import { FloorClient, plainServer } from '../plain-server.ts';

interface Opened {
  readonly call: (args: { readonly characters: number }) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

const OPEN: Readonly<Record<string, () => Promise<Opened>>> = {
  patchbay: async () => {
    const connections = new ConnectionPool();
    const lease = await connections.acquire(plainServer());
    return {
      call: (args) => lease.value.callTool('large', args),
      close: () => connections.close(),
    };
  },
  floor: async () => {
    const client = new FloorClient(plainServer());
    await client.initialize();
    return {
      call: (args) => client.request('tools/call', { name: 'large', arguments: args }),
      close: () => client.close(),
    };
  },
  '@ai-sdk/mcp': async () => {
    const transport = new Experimental_StdioMCPTransport(plainServer());
    const client = await createMCPClient({ transport });
    const { large } = await client.tools();
    return {
      call: async (args) => large!.execute(args, { toolCallId: 'c', messages: [], context: {} }),
      close: () => client.close(),
    };
  },
  '@langchain/mcp-adapters': async () => {
    const client = new MultiServerMCPClient({
      mcpServers: { all: { transport: 'stdio', ...plainServer() } },
    });
    const tools = await client.getTools();
    const large = tools.find(({ name }) => name === 'large');
    return {
      call: async (args) => ({ content: [{ text: (await large!.invoke(args)) as unknown }] }),
      close: () => client.close(),
    };
  },
};

/** One text of so many MB, from the call to the string: what the reader of the pipe is worth. */
export function largeResult(megabytes: number): Case {
  const characters = megabytes * 1_000_000;
  const arm = ([name, open]: [string, () => Promise<Opened>]): Arm => {
    let opened: Opened | undefined;
    let answer: unknown;
    return {
      name,
      setup: async () => void (opened = await open()),
      run: async () => void (answer = await opened!.call({ characters })),
      answer: async () => {
        const [{ text }] = (answer as { content: [{ text: string }] }).content;
        return [text.length, text === 'x'.repeat(characters)];
      },
      teardown: async () => opened?.close(),
    };
  };
  const goal = { arm: 'patchbay', of: 'value' } as const;
  return {
    name: `${megabytes} MB of text as the result of a call, stdio`,
    unit: 'ms',
    warmUp: 1,
    rounds: 5,
    arms: Object.entries(OPEN).map(arm),
    goals: [
      { ...goal, against: 'floor', atMost: 1.3 },
      { ...goal, against: '@ai-sdk/mcp', atMost: 1 / 4 },
      { ...goal, against: '@langchain/mcp-adapters', atMost: 1 / 4 },
    ],
  };
}
