import { ConnectionPool } from '@patchbay/connection-pool';
import { interruptOn, langchain } from '@patchbay/langchain';
import { McpServerCapability } from '@patchbay/mcp';
import type { HttpServerConfig, ServerConfig } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer } from '@patchbay/testkit';
import { MemorySaver } from '@langchain/langgraph';
import { createAgent } from 'langchain';
import { describe, expect, it, onTestFinished } from 'vitest';

import { ask, outcomes, script } from './script.ts';
import { humanReview } from './shipped-middleware.ts';
import { sent } from './wire.ts';

/** A registry with one server, and the pool that it shares. */
function board(server: ServerConfig) {
  const connections = new ConnectionPool();
  const registry = new ExtensionRegistry();
  onTestFinished(async () => {
    await registry.close();
    await connections.close();
  });
  registry.register(new McpServerCapability({ id: 's', server, connections }));
  return { registry, connections };
}

describe('what is open at LangChain’s own packages', () => {
  it('langchain-mcp-adapters-75: an agent goes on using the tools of a server that was started again', async () => {
    await using server = await scriptedServer({
      tools: [{ name: 'last', onCall: 'die-once' }, { name: 'echo' }],
    });
    const { registry } = board(server.config);
    const model = script([{ name: 's__last' }], [{ name: 's__echo' }], [{ name: 's__last' }]);
    const agent = createAgent({ model, ...langchain(registry.view()) });
    expect(outcomes(await agent.invoke(ask()))).toEqual([
      expect.stringMatching(/^error:Error: .*may or may not have run/),
      'success:{}',
      'success:execution 2',
    ]);
    expect(server.connections).toBe(2);
  });

  it('langchainjs-11593, -10905, -9419: a model is shown the schema of the server, and arguments are held to it', async () => {
    const inputSchema = {
      type: 'object',
      $defs: { Node: { type: 'object', properties: { kid: { $ref: '#/$defs/Node' } } } },
      properties: {
        count: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
        unit: { oneOf: [{ const: 'km' }, { const: 'mile' }] },
        tree: { $ref: '#/$defs/Node' },
      },
      required: ['count'],
    };
    await using server = await scriptedServer({ tools: [{ name: 'go', inputSchema }] });
    const { registry } = board(server.config);
    const lc = langchain(registry.view());
    const body = (await sent('openai chat', lc.middleware, ask().messages)) as {
      tools: { function: { parameters: object } }[];
    };
    expect(body.tools[0]?.function.parameters).toEqual(inputSchema);
    const calls = [
      { count: null, unit: 'km', tree: { kid: { kid: {} } } },
      { unit: 'km' },
      { count: 1, unit: 'inch' },
      { count: 1, tree: { kid: { kid: 'no' } } },
    ].map((args, at) => ({ name: 's__go', args, id: `${at}` }));
    const result = await createAgent({ model: script(calls), ...lc }).invoke(ask());
    expect(outcomes(result).map((text) => text.split(':')[0])).toEqual([
      'success',
      'error',
      'error',
      'error',
    ]);
    expect(server.executions('go')).toBe(1);
  });
});

describe('langchainjs-11605, by its four names', () => {
  const users = ['alice', 'bob', 'alice'];

  it('shared connection pool: agents of many users have one process', async () => {
    await using server = await scriptedServer({ tools: [{ name: 'echo' }] });
    const { registry, connections } = board({ ...server.config, sharing: 'everyone' });
    for (const session of users) {
      const view = registry.view({ session }, { identity: { id: session } });
      const model = script([{ name: 's__echo' }]);
      expect(outcomes(await createAgent({ model, ...langchain(view) }).invoke(ask()))).toEqual([
        'success:{}',
      ]);
    }
    expect(server.connections).toBe(1);
    expect(connections.inspect()).toHaveLength(1);
  });

  it('per-user auth: each call goes out with the credentials of the run’s own user', async () => {
    await using server = await scriptedServer({ transport: 'http', tools: [{ name: 'echo' }] });
    const calls: (string | null)[] = [];
    const { registry } = board({
      ...(server.config as HttpServerConfig),
      headers: (identity) => ({ authorization: `Bearer token-of-${String(identity?.id)}` }),
      fetch: (input, init) => {
        if (typeof init?.body === 'string' && init.body.includes('tools/call'))
          calls.push(new Headers(init?.headers).get('authorization'));
        return fetch(input, init);
      },
    });
    // One agent object serves all of them: the view comes with the run.
    const { middleware } = langchain(registry.view());
    for (const user of users) {
      const agent = createAgent({ model: script([{ name: 's__echo' }]), middleware });
      const patchbay = registry.view({ session: user }, { identity: { id: user } });
      await agent.invoke(ask(), { context: { patchbay } });
    }
    expect(calls).toEqual(users.map((user) => `Bearer token-of-${user}`));
  });

  it('gating by destructive hint: by policy, or by humanInTheLoopMiddleware', async () => {
    await using server = await scriptedServer({
      tools: [
        { name: 'read', annotations: { readOnlyHint: true } },
        { name: 'drop', annotations: { destructiveHint: true } },
      ],
    });
    await using connections = new ConnectionPool();
    const run = async (gate: 'policy' | 'middleware') => {
      await using registry = new ExtensionRegistry({
        approval: ({ tool: { annotations } }) =>
          gate === 'policy' && annotations?.destructiveHint !== false && !annotations?.readOnlyHint
            ? 'ask'
            : 'allow',
      });
      registry.register(new McpServerCapability({ id: 's', server: server.config, connections }));
      const view = registry.view();
      const lc = langchain(view);
      const agent = createAgent({
        model: script([{ name: 's__read' }, { name: 's__drop' }]),
        middleware:
          gate === 'policy'
            ? lc.middleware
            : [humanReview({ interruptOn: await interruptOn(view) }), ...lc.middleware],
        checkpointer: new MemorySaver(),
      });
      const { __interrupt__: asked } = await agent.invoke(ask(), {
        configurable: { thread_id: 't' },
      });
      return asked?.map(({ value }) => (value as { actionRequests: object[] }).actionRequests);
    };
    for (const gate of ['policy', 'middleware'] as const)
      expect(await run(gate)).toMatchObject([[{ name: 's__drop' }]]);
    expect(server.executions('drop')).toBe(0);
  });
});
