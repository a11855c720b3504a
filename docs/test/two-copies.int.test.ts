import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { aiSdk } from '@patchbay/ai-sdk';
import { ConnectionPool } from '@patchbay/connection-pool';
import type * as Mcp from '@patchbay/mcp';
import { PatchbayError, type Problem } from '@patchbay/protocols';
import type * as Protocols from '@patchbay/protocols';
import type * as Registry from '@patchbay/registry';
import type * as Skills from '@patchbay/skills';
import { scriptedServer } from '@patchbay/testkit';
import { generateText } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

type Copy = typeof Protocols & typeof Registry & typeof Mcp & typeof Skills;

let folder: string;
let a: Copy;
let b: Copy;

/** Two copies that share no module, as npm installs them where two dependents want different versions. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'patchbay-copies-'));
  const copy = async (name: string) => {
    const outfile = join(folder, `${name}.mjs`);
    await build({
      stdin: {
        contents: ['protocols', 'registry', 'mcp', 'skills']
          .map((pkg) => `export * from '@patchbay/${pkg}';`)
          .join('\n'),
        resolveDir: fileURLToPath(new URL('..', import.meta.url)),
      },
      bundle: true,
      outfile,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      conditions: ['@patchbay/source'],
    });
    return (await import(/* @vite-ignore */ pathToFileURL(outfile).href)) as Copy;
  };
  a = await copy('a');
  b = await copy('b');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('two copies of the packages in one process', () => {
  it('are two', () => {
    expect(a.ExtensionRegistry).not.toBe(b.ExtensionRegistry);
    expect(a.PatchbayError).not.toBe(b.PatchbayError);
  });

  it('know the errors of each other, with code, cause and details', async () => {
    const cause = new Error('socket');
    const error = new b.PatchbayError('connect-failed', 'not there', {
      cause,
      details: { retryAt: '2099-01-01T00:00:00.000Z' },
    });
    expect(error instanceof a.PatchbayError).toBe(false);
    for (const copy of [a, b, { PatchbayError }])
      expect(copy.PatchbayError.isInstance(error)).toBe(true);
    expect(a.toPatchbayError(error)).toBe(error);
    expect(a.problemFrom('x', error)).toMatchObject({
      code: 'connect-failed',
      cause,
      retryAt: '2099-01-01T00:00:00.000Z',
    });
    const itself: Protocols.Capability[] = [];
    itself.push({ id: 'x', children: itself });
    expect(() => b.compositionOf(itself[0]!)).toThrow(
      expect.toSatisfy((thrown) => a.PatchbayError.isInstance(thrown)),
    );
  });

  it('work together: capabilities of one in a registry of the other, a pool of a third', async () => {
    const problems: Problem[] = [];
    await using connections = new ConnectionPool();
    await using server = await scriptedServer({
      tools: [{ name: 'pay', onCall: 'die-after-execution' }, { name: 'echo' }],
    });
    await using registry = new a.ExtensionRegistry({
      onProblem: (problem) => void problems.push(problem),
    });
    const lamp = b.changeSource('lamp');
    const light = b.defineTool({
      capability: 'lamp',
      name: 'light',
      call: () => {
        throw new b.PatchbayError('unavailable', 'no power');
      },
    });
    registry.register(
      new b.CombinedCapability('room', [
        {
          id: 'lamp',
          revision: lamp.revision,
          changes: lamp.subscribe,
          tools: async () => [light],
        },
        new b.McpServerCapability({ id: 'shop', server: server.config, connections }),
        b.memorySkills({
          id: 'own',
          skills: [{ name: 'tidy', description: 'Tidies.', body: 'Tidy up.' }],
        }),
      ]),
      { session: 's' },
    );
    registry.register(new b.SkillManagerCapability());
    const view = registry.view({ session: 's' });
    const { tools, skills, callTool } = await view.compile();
    expect(tools.map(({ definition }) => definition.name)).toEqual(
      expect.arrayContaining(['activate_skill', 'lamp__light', 'shop__echo', 'shop__pay']),
    );
    expect(skills.map(({ name }) => name)).toEqual(['tidy']);
    expect(await view.resources.read('skill://tidy')).toMatchObject([{ text: 'Tidy up.' }]);
    await expect(callTool('lamp__light', {})).rejects.toMatchObject({ code: 'unavailable' });
    await expect(callTool('shop__pay', {})).rejects.toMatchObject({ code: 'outcome-unknown' });
    const changes = view.changes()[Symbol.asyncIterator]();
    lamp.emit('tools_changed');
    expect((await changes.next()).value).toMatchObject({ capability: 'lamp' });
    await changes.return?.();
    const none = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
    const model = new MockLanguageModelV4({
      doGenerate: async () => ({
        content: [{ type: 'text', text: 'done' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage: { inputTokens: none, outputTokens: { total: 1, text: 1, reasoning: undefined } },
        warnings: [],
      }),
    });
    await generateText({ model, prompt: 'go', ...aiSdk(view) });
    const [request] = model.doGenerateCalls;
    expect(request?.tools?.map(({ name }) => name)).toContain('lamp__light');
    expect(problems).toEqual([]);
  });

  it('do not mix: what is registered, remembered or closed in one stays there', async () => {
    const [one, two] = [new a.ExtensionRegistry(), new b.ExtensionRegistry()];
    one.register({ id: 'x' }, { session: 's' });
    one.state({ session: 's' }).set('k', 1);
    one.view({ session: 's' }, { identity: { id: 'ann' } });
    two.view({ session: 's' }, { identity: { id: 'bob' } });
    expect(two.inspect()).toEqual([]);
    expect(two.state({ session: 's' }).get('k')).toBeUndefined();
    await two.close();
    expect(one.inspect().map(({ id }) => id)).toEqual(['x']);
    await one.close();
  });
});
