import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { ServerConfig } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer, type ScriptedCall } from '@patchbay/testkit';
import { describe, expect, it, onTestFinished } from 'vitest';

import { aiSdk } from '../src/index.ts';
import { call, MAJORS, outputs, scripted, text } from './majors.ts';

const CELLS = MAJORS.flatMap((major) =>
  (['stdio', 'http'] as const).map((transport) => ({ ...major, transport, major })),
);

/** A server whose tool waits for ever; `reached` and `ended` are what the server itself saw of the call. */
async function waiting(transport: 'stdio' | 'http', timeouts: ServerConfig['timeouts'] = {}) {
  let reached: () => void = () => undefined;
  let ended: () => void = () => undefined;
  const wasReached = new Promise<void>((done) => (reached = done));
  const hasEnded = new Promise<void>((done) => (ended = done));
  const onCall = async (_args: unknown, { signal }: ScriptedCall) => {
    signal.addEventListener('abort', () => ended(), { once: true });
    reached();
    return new Promise<string>(() => undefined);
  };
  const server = await scriptedServer({
    transport,
    tools: [{ name: 'wait', onCall }, { name: 'look' }],
  });
  const connections = new ConnectionPool();
  const registry = new ExtensionRegistry();
  onTestFinished(async () => {
    await registry.close();
    await connections.close();
    await server.close();
  });
  const config = { ...server.config, timeouts };
  registry.register(new McpServerCapability({ id: 's', server: config, connections }));
  return { server, registry, wasReached, hasEnded };
}

describe.each(CELLS)(
  'a call of a server over $transport, on ai $major.major',
  ({ major, transport }) => {
    it('that is aborted is cancelled at the server, the program gets its own reason, and the connection stays', async () => {
      const { server, registry, wasReached, hasEnded } = await waiting(transport);
      const stop = new AbortController();
      const { model, seen } = scripted(major, () => [call('1', 's__wait')]);
      const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
      const run = agent.generate({ prompt: 'go', abortSignal: stop.signal });
      await wasReached;
      stop.abort(new Error('the user left'));
      await expect(run).rejects.toThrow('the user left');
      await hasEnded;
      expect(server.cancellations).toBe(1);
      expect(seen).toHaveLength(1);

      const next = scripted(major, [[call('2', 's__look')], [text('done')]]);
      await new major.ai.ToolLoopAgent({ model: next.model, ...aiSdk(registry.view()) }).generate({
        prompt: 'go',
      });
      expect(outputs(next.seen[1])['s__look']).toEqual({ type: 'text', value: '{}' });
      expect(server.connections).toBe(1);
    });

    it('that takes longer than its server may is cancelled there, and the model reads of a time limit', async () => {
      const { server, registry, hasEnded } = await waiting(transport, { callMs: 50 });
      const { model, seen } = scripted(major, [[call('1', 's__wait')], [text('done')]]);
      const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
      const { text: said, steps } = await agent.generate({ prompt: 'go' });
      expect(said).toBe('done');
      await hasEnded;
      expect(server.cancellations).toBe(1);
      expect(outputs(seen[1])['s__wait']).toMatchObject({
        type: 'error-text',
        value: expect.stringContaining('It took too long and was given up.'),
      });
      expect(steps[0]?.content.at(-1)).toMatchObject({ error: { cause: { code: 'timeout' } } });
    });

    it('that takes longer than the AI SDK’s limit is cancelled there too, and nobody calls that an abort', async () => {
      const { server, registry, wasReached, hasEnded } = await waiting(transport);
      const { model, seen } = scripted(major, [[call('1', 's__wait')], [text('done')]]);
      const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
      if (major.major === 7) {
        await agent.generate({ prompt: 'go', timeout: { toolMs: 200 } });
        expect(outputs(seen[1])['s__wait']).toMatchObject({
          type: 'error-text',
          value: expect.stringContaining('time limit'),
        });
      } else {
        // 6 has limits of whole steps only: they end the run, with this reason.
        const limit = new AbortController();
        const run = agent.generate({ prompt: 'go', abortSignal: limit.signal });
        await wasReached;
        limit.abort(new DOMException('The step took too long.', 'TimeoutError'));
        await expect(run).rejects.toMatchObject({ name: 'TimeoutError' });
      }
      await hasEnded;
      expect(server.cancellations).toBe(1);
    });
  },
);
