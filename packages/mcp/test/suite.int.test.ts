import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { scriptedServer, skillsServer, type ScriptedServerOptions } from '@patchbay/testkit';
import {
  describeCapability,
  describeChangeObservable,
  describeCommandResource,
  describeMcpResource,
  describeSkillResource,
} from '@patchbay/testkit/vitest';

const SERVER: ScriptedServerOptions = {
  tools: [
    { name: 'works' },
    { name: 'fails', onCall: 'tool-error' },
    { name: 'hangs', onCall: 'never' },
  ],
  resources: [{ uri: 'memo://one', text: 'first' }],
  prompts: [
    { name: 'review', text: 'Review.', arguments: [{ name: 'path', required: true }] },
    { name: 'summary', text: 'Sum it up.' },
  ],
};

async function shop() {
  const pool = new ConnectionPool({ backOff: { firstMs: 1, maxMs: 20 } });
  const server = await scriptedServer(SERVER);
  return {
    capability: () =>
      new McpServerCapability({ id: 'shop', server: server.config, connections: pool }),
    server,
    [Symbol.asyncDispose]: async () => {
      await pool.close();
      await server.close();
    },
  };
}

describeCapability('McpServerCapability', { create: shop });

describeMcpResource('McpServerCapability', {
  create: async () => {
    const { capability, ...rest } = await shop();
    return {
      ...rest,
      capability: capability(),
      works: { name: 'works', args: {} },
      fails: { name: 'fails', args: {} },
      hangs: { name: 'hangs', args: {} },
    };
  },
});

describeCommandResource('McpServerCapability', {
  create: async () => {
    const { capability, ...rest } = await shop();
    return { ...rest, capability: capability() };
  },
});

describeChangeObservable('McpServerCapability', {
  create: async () => {
    const { capability: make, server, ...rest } = await shop();
    const capability = make();
    await capability.callTool('works', {});
    return { ...rest, capability, change: () => server.setTools([{ name: 'works' }]) };
  },
});

describeSkillResource('McpServerCapability', {
  create: async () => {
    const pool = new ConnectionPool({ backOff: { firstMs: 1, maxMs: 20 } });
    const server = await skillsServer({
      skills: [{ name: 'pdf', files: { 'forms.md': 'Forms.' } }, { name: 'memo' }],
    });
    return {
      capability: new McpServerCapability({ id: 'acme', server: server.config, connections: pool }),
      [Symbol.asyncDispose]: async () => {
        await pool.close();
        await server.close();
      },
    };
  },
});
