import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { ToolResult } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer, type ScriptedServerOptions } from '@patchbay/testkit';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';

import { aiSdk, commands, resource } from '../src/index.ts';
import { call, MAJORS, scripted, text } from './majors.ts';

const PNG = 'iVBORw0KGgo=';

/** A view of one server called `docs`. */
async function plugged(options: ScriptedServerOptions) {
  const server = await scriptedServer({ transport: 'http', ...options });
  const connections = new ConnectionPool();
  const registry = new ExtensionRegistry();
  onTestFinished(async () => {
    await registry.close();
    await connections.close();
    await server.close();
  });
  registry.register(new McpServerCapability({ id: 'docs', server: server.config, connections }));
  return registry.view();
}

describe.each(MAJORS)('what a server has beside tools, on ai $major', (major) => {
  it('a resource is a message before the one that speaks of it, its media parts of their own', async () => {
    const contents = (uri: string) =>
      uri.endsWith('.png')
        ? [{ uri, mimeType: 'image/png', blob: PNG }]
        : [{ uri, mimeType: 'text/markdown', text: '# Terms' }];
    const view = await plugged({
      resources: ['doc://terms.md', 'doc://seal.png'].map((uri) => ({ uri, text: '' })),
      methods: { 'resources/read': ({ uri }) => ({ contents: contents(String(uri)) }) },
    });
    const messages = [];
    for (const { uri } of await view.resources.list()) messages.push(await resource(view, uri));
    messages.push({ role: 'user' as const, content: 'Are they sealed?' });
    const { model, seen } = scripted(major, [[text('Yes.')]]);
    const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(view) });
    await agent.generate({ messages });
    const shown = JSON.stringify(seen[0]?.prompt);
    expect(shown).toContain('# Terms');
    expect(shown).toContain('terms.md');
    expect(shown.split(PNG)).toHaveLength(2);
    expect(seen[0]?.prompt.at(-1)).toMatchObject({
      content: [expect.objectContaining({ text: 'Are they sealed?' })],
    });
  });

  it('one that is too long is cut, and one that is not there is an error', async () => {
    const view = await plugged({ resources: [{ uri: 'doc://long', text: 'x'.repeat(5_000) }] });
    const { uri } = (await view.resources.list())[0]!;
    const { content } = await resource(view, uri, { maxResultChars: 100 });
    expect(JSON.stringify(content).length).toBeLessThan(500);
    await expect(resource(view, 'nowhere://x')).rejects.toMatchObject({ code: 'unknown-scheme' });
  });

  it('a prompt is a slash command', async () => {
    const view = await plugged({
      prompts: [{ name: 'review', text: 'Review it.', arguments: [{ name: 'repo' }] }],
    });
    const line = { role: 'user' as const, content: '/review acme/x' };
    const messages = await commands(view, [line]);
    const { model, seen } = scripted(major, [[text('done')]]);
    await new major.ai.ToolLoopAgent({ model, ...aiSdk(view) }).generate({ messages });
    expect(JSON.stringify(seen[0]?.prompt)).toMatch(/Review it\..*acme\/x/u);
  });

  it('what a tool declares as output is checked, and in the result for the program', async () => {
    const onCall = ({ city }: Readonly<Record<string, unknown>>) => ({
      content: [{ type: 'text', text: 'warm' }],
      structuredContent: city === 'Rome' ? { temp: 21 } : { temp: 'warm' },
    });
    const properties = { temp: { type: 'number' } };
    const outputSchema = { type: 'object', properties, required: ['temp'] };
    const view = await plugged({ tools: [{ name: 'weather', outputSchema, onCall }] });
    const { model } = scripted(major, [
      [call('1', 'docs__weather', { city: 'Rome' }), call('2', 'docs__weather', { city: 'Oslo' })],
      [text('done')],
    ]);
    const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(view) });
    const { steps } = await agent.generate({ prompt: 'go' });
    const results = steps[0]!.toolResults.map(({ output }) => output as ToolResult);
    expect(results[0]).toMatchObject({ structuredContent: { temp: 21 } });
    expect(results[0]?.meta).toBeUndefined();
    expect(results[1]?.meta).toMatchObject({
      'patchbay/invalid-output': { violations: [expect.stringContaining('temp')] },
    });
  });

  describe('output that the program has typed', () => {
    const Weather = z.object({ temp: z.number() });
    const weather = (onCall: (args: Readonly<Record<string, unknown>>) => object) =>
      plugged({ tools: [{ name: 'weather', onCall }] });
    const ask = [
      [call('1', 'docs__weather', { city: 'Rome' }), call('2', 'docs__weather', { city: 'Oslo' })],
      [text('done')],
    ];

    it.each([
      ['a schema of Zod', () => Weather],
      ['jsonSchema() of the AI SDK', () => major.ai.jsonSchema({ type: 'object' }, validate)],
      ['one that is made when it is needed', () => () => major.ai.jsonSchema({}, validate)],
    ])('is the structured content, and an error where it is another: %s', async (_, schema) => {
      const view = await weather(({ city }) => ({
        content: [{ type: 'text', text: 'warm' }],
        structuredContent: city === 'Rome' ? { temp: 21 } : { temp: 'warm' },
      }));
      const { model, seen } = scripted(major, ask);
      const outputSchemas = { docs__weather: schema() as typeof Weather };
      const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(view, { outputSchemas }) });
      const { steps } = await agent.generate({ prompt: 'go' });
      const [result] = steps[0]!.toolResults;
      expect(result).toMatchObject({ toolName: 'docs__weather', output: { temp: 21 } });
      expect(result?.dynamic).not.toBe(true);
      const failed = steps[0]!.content.find(({ type }) => type === 'tool-error');
      expect(failed).toMatchObject({
        toolCallId: '2',
        error: { message: expect.stringMatching(/docs__weather is not what.*temp/u) as string },
      });
      expect(JSON.stringify(seen[1]?.prompt)).toContain(String.raw`{\"temp\":21}`);
    });

    it('is read from text that is JSON, and shown again as it was from a stored conversation', async () => {
      const view = await weather(() => ({ content: [{ type: 'text', text: '{"temp":3}' }] }));
      const { model } = scripted(major, ask);
      const outputSchemas = { docs__weather: Weather };
      const extensions = aiSdk(view, { outputSchemas, progress: true });
      const agent = new major.ai.ToolLoopAgent({ model, ...extensions });
      const { steps } = await agent.generate({ prompt: 'go' });
      expect(steps[0]!.toolResults.map(({ output }) => output)).toEqual([{ temp: 3 }, { temp: 3 }]);

      const state = 'output-available' as const;
      const part = { state, toolCallId: '1', input: {}, output: { temp: 3 } };
      const whole = { content: [{ type: 'text', text: 'cold' }] };
      const before = { state, toolCallId: '0', input: {}, output: whole };
      const stored = [
        {
          role: 'assistant' as const,
          parts: [
            { type: 'tool-docs__weather' as const, ...part },
            { type: 'tool-docs__weather' as const, ...before },
            { type: 'tool-docs__gone' as const, ...part, toolCallId: '3' },
          ],
        },
      ];
      const tools = await aiSdk(view, { outputSchemas }).toolsForMessages(stored);
      const shown = await major.ai.convertToModelMessages(stored, { tools });
      const results = shown
        .flatMap(({ content }) => content as object[])
        .filter((one) => 'output' in one);
      expect(results.map((one) => one.output)).toMatchObject([
        { type: 'text', value: '{"temp":3}' },
        { type: 'text', value: 'cold' },
        { type: 'text', value: '{"temp":3}' },
      ]);
    });
  });
});

const validate = {
  validate: (value: unknown) =>
    typeof (value as { readonly temp?: unknown }).temp === 'number'
      ? { success: true as const, value }
      : { success: false as const, error: new Error('temp is no number') },
};
