import { PatchbayError, type ContentPart, type ToolResult } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { aiSdk, ToolCallError, type AiSdkOptions } from '../src/index.ts';
import { call, capability, MAJORS, outputs, scripted, text } from './majors.ts';

const PNG = 'iVBORw0KGgo=';
const PDF = 'JVBERi0xLjcK';

describe.each(MAJORS)('a result in ai $major', (major) => {
  const { ai } = major;
  let registry: ExtensionRegistry;

  beforeEach(() => {
    registry = new ExtensionRegistry({ onProblem: () => undefined });
  });
  afterEach(() => registry.close());

  /** Runs one tool that does this; gives the content of the step, and what the model reads of it. */
  async function runOne(
    does: (args: unknown) => unknown,
    options: AiSdkOptions = {},
    args: unknown = {},
  ) {
    registry.register(
      capability('t', [
        {
          name: 'x',
          inputSchema: { type: 'object', properties: { n: { type: 'number' } } },
          call: async (given) => (await does(given)) as ToolResult,
        },
      ]),
    );
    const { model, seen } = scripted(major, [[call('1', 't__x', args)], [text('done')]]);
    const agent = new ai.ToolLoopAgent({
      model,
      ...aiSdk(registry.view(), { onProblem: () => undefined, ...options }),
    });
    const result = await agent.generate({ prompt: 'go' });
    expect(result.text).toBe('done');
    return { part: result.steps[0]?.content.at(-1), output: outputs(seen[1])['t__x'], seen };
  }

  it('that the tool calls an error is a tool error with its words, and the run goes on', async () => {
    const failed = {
      isError: true,
      content: [{ type: 'text', text: 'disk full' }],
      structuredContent: { code: 28 },
    };
    const { part, output } = await runOne(() => failed);
    expect(output).toEqual({ type: 'error-text', value: 'Error: disk full' });
    expect(part).toMatchObject({ type: 'tool-error', toolName: 't__x' });
    const { error } = part as { readonly error: unknown };
    expect(error).toBeInstanceOf(ToolCallError);
    expect(error).toMatchObject({ result: failed });
  });

  it('that is an error without words still says something', async () => {
    const { output } = await runOne(() => ({ isError: true, content: [] }));
    expect(output).toEqual({
      type: 'error-text',
      value: 'Error: The tool failed without saying why.',
    });
  });

  it('that never came is told with what to do; the cause is kept for the program', async () => {
    const lost = new PatchbayError(
      'outcome-unknown',
      'The connection to bank was lost in the middle of t__x.',
    );
    const { part, output } = await runOne(() => {
      throw lost;
    });
    expect(output?.value).toMatch(
      /^Error: The connection to bank was lost.*\n.*may have run.*before you call it again/u,
    );
    expect(part).toMatchObject({ type: 'tool-error', error: { cause: lost } });
  });

  it('of bad arguments lists what is wrong, and the tool does not run', async () => {
    let ran = false;
    const { part, output } = await runOne(() => (ran = true), {}, { n: 'many' });
    expect(part).toMatchObject({ type: 'tool-error' });
    expect(output).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining(
        'n: expected number, got the text \\"many\\"'.replaceAll('\\', ''),
      ),
    });
    expect(ran).toBe(false);
  });

  it('has no stack and no token in what the model reads', async () => {
    const { output } = await runOne(() => {
      throw new Error(
        'GET https://me:pass@host/x?token=abcdef failed\n    at secret (/home/me/server.js:1:1)',
      );
    });
    expect(output?.value).not.toMatch(/pass@|abcdef|server\.js/u);
    expect(output?.value).toContain('host/x');
  });

  it('vercel-ai-6073, -7202, -11072: with an image reaches the model once as an image, beside a note', async () => {
    const content = [
      { type: 'text', text: 'a shot' },
      { type: 'image', mimeType: 'image/png', data: PNG },
      { type: 'resource', uri: 'f://a.pdf', mimeType: 'application/pdf', data: PDF },
    ];
    const { output, seen, part } = await runOne(() => ({ content }));
    expect(output?.type).toBe('content');
    const parts = output?.value as readonly { readonly type: string }[];
    expect(parts[0]).toMatchObject({
      type: 'text',
      text: expect.stringMatching(/^a shot\n\[image image\/png, 8 bytes\]/u),
    });
    expect(parts.slice(1)).toMatchObject(
      major.major === 7
        ? [
            { type: 'file', mediaType: 'image/png', data: { type: 'data', data: PNG } },
            { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf' },
          ]
        : [
            { type: 'image-data', mediaType: 'image/png', data: PNG },
            { type: 'file-data', mediaType: 'application/pdf', filename: 'a.pdf' },
          ],
    );
    expect(JSON.stringify(seen[1]).split(PNG)).toHaveLength(2);
    expect(part).toMatchObject({ type: 'tool-result', output: { content } });
  });

  it('that is too long is cut for the model and kept whole for the program', async () => {
    const { output, part } = await runOne(() => 'é😀'.repeat(1000), { maxResultChars: 100 });
    expect(output?.value).toMatch(/\[cut: 2900 of 3000 characters/u);
    expect(output?.value).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
    expect(part).toMatchObject({ output: { content: [{ text: 'é😀'.repeat(1000) }] } });
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['no content', { structuredContent: { rows: [1, 2] }, content: [] }],
    [
      'parts of no kind',
      {
        content: [
          { type: 'hologram', raw: { beam: 1 } },
          null,
          7,
          { type: 'text' },
        ] as unknown as ContentPart[],
      },
    ],
    ['an image that is none', { content: [{ type: 'image', mimeType: 'image/png', data: '***' }] }],
    ['a loop', { content: [], structuredContent: loop() }],
  ])('of %s is still a text', async (_, result) => {
    const { output } = await runOne(() => result);
    expect(output?.type).toBe('text');
    expect(output?.value).not.toBe('');
  });

  it('never carries its meta to the model', async () => {
    const { seen } = await runOne(() => ({
      content: [{ type: 'text', text: 'ok', meta: { trace: 'hush' } }],
      meta: { trace: 'hush' },
    }));
    expect(JSON.stringify(seen[1])).not.toContain('hush');
  });

  it('reads the same when a stored conversation comes back, also of a tool that is gone', async () => {
    const output = { content: [{ type: 'image', mimeType: 'image/png', data: PNG }] };
    const part = {
      type: 'dynamic-tool',
      toolName: 'old__shot',
      toolCallId: '1',
      state: 'output-available',
      input: {},
      output,
    };
    const messages = [{ role: 'assistant', parts: [part] }] as never;
    const extensions = aiSdk(registry.view());
    const tools = await extensions.toolsForMessages(messages);
    const sent = await ai.convertToModelMessages(messages, { tools });
    expect(JSON.stringify(sent)).toContain('image/png, 8 bytes');
    expect(JSON.stringify(sent)).toContain('image-data');
  });

  describe('of an aborted call', () => {
    const waiting = (reached: () => void, ended: (reason: unknown) => void) =>
      capability('t', [
        {
          name: 'x',
          call: async (_args, { signal }) => {
            const gone = new Promise<never>((_, reject) =>
              signal?.addEventListener(
                'abort',
                () => (ended(signal.reason), reject(signal.reason as Error)),
              ),
            );
            reached();
            return gone;
          },
        },
      ]);

    it.each(['generate', 'stream'] as const)(
      'tells its source why, and the program too (%s)',
      async (way) => {
        const stop = new AbortController();
        const ended = withResolvers<unknown>();
        registry.register(waiting(() => stop.abort(new Error('the user left')), ended.resolve));
        const { model, seen } = scripted(major, () => [call('1', 't__x')]);
        const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
        const given = { prompt: 'go', abortSignal: stop.signal };
        if (way === 'generate')
          await expect(agent.generate(given)).rejects.toThrow('the user left');
        else await (await agent.stream(given)).consumeStream({ onError: () => undefined });
        expect(await ended.promise).toEqual(new Error('the user left'));
        expect(seen).toHaveLength(1);
      },
    );

    it('is told apart from a time limit', async () => {
      registry.register(
        waiting(
          () => undefined,
          () => undefined,
        ),
      );
      const { tools, toolsForMessages } = aiSdk(registry.view());
      await toolsForMessages();
      const options = { toolCallId: '1', messages: [], abortSignal: AbortSignal.timeout(1) };
      await expect(tools['t__x']?.execute?.({}, options as never)).rejects.toMatchObject({
        message: expect.stringContaining('time limit'),
        cause: { code: 'timeout' },
      });
    });
  });

  it('shows signs of life as preliminary results where that is wanted', async () => {
    registry.register(
      capability('t', [
        {
          name: 'x',
          call: async (_args, { onProgress }) => {
            for (const progress of [1, 2]) {
              onProgress?.({ progress, total: 2, message: 'copied' });
              await new Promise((resolve) => setTimeout(resolve, 1));
            }
            return 'all copied';
          },
        },
      ]),
    );
    const { model, seen } = scripted(major, [[call('1', 't__x')], [text('done')]]);
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view(), { progress: true }) });
    const { fullStream } = await agent.stream({ prompt: 'go' });
    const shown: unknown[] = [];
    for await (const part of fullStream) {
      if (part.type === 'tool-result')
        shown.push([
          part.preliminary === true,
          (part.output as { content: [{ text: string }] }).content[0].text,
        ]);
    }
    expect(shown).toEqual([
      [true, '1 of 2: copied'],
      [true, '2 of 2: copied'],
      [true, 'all copied'],
      [false, 'all copied'],
    ]);
    expect(outputs(seen[1])['t__x']).toEqual({ type: 'text', value: 'all copied' });
  });

  it('that fails behind signs of life is an error all the same, and a run that is left behind is aborted', async () => {
    const stop = new AbortController();
    const ended = withResolvers<unknown>();
    registry.register(
      capability('t', [
        {
          name: 'fails',
          call: async (_args, { onProgress }) => {
            onProgress?.({ progress: 1 });
            throw new Error('disk full');
          },
        },
        {
          name: 'waits',
          call: async (_args, { onProgress, signal }) => {
            onProgress?.({ progress: 1 });
            return new Promise<never>((_, reject) =>
              signal?.addEventListener('abort', () => {
                ended.resolve(signal.reason);
                reject(signal.reason as Error);
              }),
            );
          },
        },
      ]),
    );
    const { model, seen } = scripted(major, [[call('1', 't__fails')], [call('2', 't__waits')]]);
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view(), { progress: true }) });
    const { fullStream } = await agent.stream({ prompt: 'go', abortSignal: stop.signal });
    const parts: string[] = [];
    for await (const part of fullStream) {
      if (!part.type.startsWith('tool-') || !('toolName' in part)) continue;
      parts.push(`${part.toolName} ${part.type}`);
      if (part.toolName === 't__waits' && part.type === 'tool-result')
        stop.abort(new Error('left'));
    }
    expect(parts).toContain('t__fails tool-error');
    expect(outputs(seen[1])['t__fails']).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining('disk full'),
    });
    expect(await ended.promise).toEqual(new Error('left'));
  });

  it('vercel-ai-6704: says where a tool comes from, and asks for no strict mode', async () => {
    registry.register(
      capability('git.hub', [
        { name: 'a/b', title: 'A of B', annotations: { readOnlyHint: true }, call: () => 'ok' },
      ]),
    );
    const [tool] = (await registry.view().compile()).tools;
    const name = tool!.definition.name;
    const { model, seen } = scripted(major, [[call('1', name)], [text('done')]]);
    const result = await new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) }).generate({
      prompt: 'go',
    });
    expect(result.steps[0]?.toolCalls[0]).toMatchObject({
      toolName: name,
      title: 'A of B',
      toolMetadata: { capability: 'git.hub', tool: 'a/b', annotations: { readOnlyHint: true } },
    });
    expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/u);
    expect(seen[0]?.tools[0]).toMatchObject({ name, strict: false });
    expect(outputs(seen[1])[name]).toEqual({ type: 'text', value: 'ok' });
  });
});

function loop(): unknown {
  const value: Record<string, unknown> = {};
  value['self'] = value;
  return value;
}

function withResolvers<T>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
} {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}
