import { isResourceLinkPart, isResourcePart, isTextPart } from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

import { hearing, npmServer, plugged } from './plugged.ts';

const asked: string[] = [];
const everything = () =>
  plugged(
    { server: npmServer('@modelcontextprotocol/server-everything', ['stdio']) },
    {
      handlers: {
        elicitation: async ({ mode = 'form' }) => {
          asked.push(`elicitation ${String(mode)}`);
          return { action: 'accept', ...(mode === 'form' ? { content: {} } : {}) };
        },
        sampling: async () => {
          asked.push('sampling');
          const content = { type: 'text', text: 'a haiku' };
          return { role: 'assistant', model: 'test', content };
        },
        roots: async () => {
          asked.push('roots');
          return [{ uri: 'file:///project', name: 'project' }];
        },
      },
    },
  );

/** Every tool that it has, with arguments, and what is in its answer. */
const TOOLS: Readonly<Record<string, readonly [Readonly<Record<string, unknown>>, object]>> = {
  echo: [{ message: 'hi' }, { content: [{ type: 'text', text: 'Echo: hi' }] }],
  'get-annotated-message': [
    { messageType: 'error', includeImage: true },
    {
      content: [
        { type: 'text', annotations: { priority: 1 } },
        { type: 'image', mimeType: 'image/png' },
      ],
    },
  ],
  'get-env': [{}, { content: [{ text: expect.stringContaining('PATH') }] }],
  'get-resource-links': [
    { count: 2 },
    {
      content: [
        { type: 'text' },
        { type: 'resource_link', uri: expect.stringMatching(/^demo:/) },
        {},
      ],
    },
  ],
  'get-resource-reference': [
    { resourceType: 'Blob', resourceId: 3 },
    { content: [{ type: 'text' }, { type: 'resource', data: expect.any(String) }, {}] },
  ],
  'get-structured-content': [
    { location: 'Chicago' },
    { structuredContent: { temperature: expect.any(Number), conditions: expect.any(String) } },
  ],
  'get-sum': [{ a: 2, b: 3 }, { content: [{ text: expect.stringContaining('5') }] }],
  'get-tiny-image': [{}, { content: [{}, { type: 'image', mimeType: 'image/png' }, {}] }],
  'gzip-file-as-resource': [
    { name: 'hi.gz', data: 'data:text/plain;base64,aGk=' },
    { content: [{ type: 'resource_link', name: 'hi.gz' }] },
  ],
  'toggle-simulated-logging': [{}, { content: [{ text: expect.stringContaining('Started') }] }],
  'toggle-subscriber-updates': [{}, { content: [{ text: expect.stringContaining('Started') }] }],
  'trigger-long-running-operation': [
    { duration: 0.2, steps: 4 },
    { content: [{ text: expect.stringContaining('completed') }] },
  ],
  'get-roots-list': [{}, { content: [{ text: expect.stringContaining('file:///project') }] }],
  'trigger-elicitation-request': [
    {},
    { content: [{ text: expect.stringContaining('provided') }, {}, {}] },
  ],
  'trigger-url-elicitation': [
    { url: 'https://example.com/' },
    { content: expect.arrayContaining([expect.objectContaining({ type: 'text' })]) as unknown },
  ],
  'trigger-sampling-request': [
    { prompt: 'a haiku' },
    { content: [{ text: expect.stringContaining('a haiku') }] },
  ],
};

describe.concurrent('server-everything, exercised once', () => {
  it('every tool, and every notification', async () => {
    await using board = everything();
    const { view, capability } = board;
    await using told = hearing(view);
    const context = { scope: {}, callId: 'c' };
    const listed = async () => (await view.compile()).tools.map(({ id }) => id.name);
    // It adds the tools that ask something once it knows what can be asked.
    await expect.poll(listed, { timeout: 10_000 }).toEqual(Object.keys(TOOLS).toSorted());
    expect(board.problems).toMatchObject([
      {
        source: 'all',
        code: 'protocol-error',
        message: expect.stringMatching(/"simulate-research-query".*run as a task/),
      },
    ]);

    const [watched] = await view.resources.list();
    const stop = new AbortController();
    await view.resources.watch(watched!.uri, { signal: stop.signal });

    const progress: number[] = [];
    for (const [name, [args, answer]] of Object.entries(TOOLS)) {
      const onProgress = (sign: { readonly progress: number }) => void progress.push(sign.progress);
      const result = await capability.callTool(name, args, { ...context, onProgress });
      expect(result, name).toMatchObject(answer);
      expect(result.isError, name).toBeUndefined();
    }
    // The last sign of life comes together with the answer, and may be overtaken by it.
    expect(progress.slice(0, 3)).toEqual([1, 2, 3]);
    expect(new Set(asked)).toEqual(
      new Set(['elicitation form', 'elicitation url', 'sampling', 'roots']),
    );
    await told.kind('resources_changed');
    await told.kind('resource_updated', watched!.uri);
    await told.kind('notifications/message');
    await told.kind('tools_changed');
    expect((await view.resources.list()).map(({ name }) => name)).toContain('hi.gz');
    stop.abort();
  });

  it('every resource, and every template', async () => {
    await using board = everything();
    const { resources } = board.view;
    const list = await resources.list();
    expect(list).toHaveLength(7);
    for (const { uri, mimeType } of list) {
      expect(await resources.exists(uri)).toBe(true);
      const [part] = await resources.read(uri);
      expect(part).toMatchObject({ type: 'resource', uri, mimeType, text: expect.any(String) });
    }
    const context = { scope: {}, signal: new AbortController().signal } as never;
    const templates = await board.capability.listResourceTemplates(context);
    const read = async (template: string) => {
      const uri = template.replace('{resourceId}', '7');
      expect(await resources.exists(uri)).toBe(true);
      return (await resources.read(uri)).filter(isResourcePart)[0]!;
    };
    const [text, blob] = templates.map(({ uriTemplate }) => uriTemplate);
    expect((await read(text!)).text).toContain('Resource 7');
    expect(Buffer.from((await read(blob!)).data!, 'base64').toString()).toContain('Resource 7');
    await expect(resources.read(text!.replace('{resourceId}', 'none'))).rejects.toMatchObject({
      code: 'protocol-error',
      message: expect.stringContaining('demo://resource/dynamic/text/none'),
    });
    await expect(resources.read('mcp://all/demo%3A%2F%2Fnone')).rejects.toMatchObject({
      code: 'not-found',
    });
  });

  it('every prompt, with its completions', async () => {
    await using board = everything();
    const { commands } = board.view;
    const parts = async (line: string) => {
      const resolved = await commands.resolve(line);
      if (resolved?.ok !== true) throw new Error(JSON.stringify(resolved));
      return resolved.content;
    };
    const list = await commands.list();
    expect(list.map(({ name, hint }) => `${name} ${hint}`.trim())).toEqual([
      'args-prompt <city> [state]',
      'completable-prompt <department> <name>',
      'resource-prompt <resourceType> <resourceId>',
      'simple-prompt',
    ]);
    expect((await parts('/simple-prompt')).every(isTextPart)).toBe(true);
    expect(await parts('/args-prompt Berlin')).toMatchObject([
      { text: expect.stringContaining('Berlin') },
    ]);
    expect(await commands.resolve('/args-prompt')).toMatchObject({
      ok: false,
      code: 'command-arguments',
      message: expect.stringContaining('`city`'),
    });
    const embedded = await parts('/resource-prompt resourceType=Text resourceId=1');
    expect(embedded.some(isResourcePart)).toBe(true);
    expect(embedded.some(isResourceLinkPart)).toBe(false);

    expect(await commands.complete('/completable-prompt E')).toEqual([
      '/completable-prompt Engineering',
    ]);
    // The second depends on the first.
    expect(await commands.complete('/completable-prompt Engineering ')).toEqual(
      ['Alice', 'Bob', 'Charlie'].map((name) => `/completable-prompt Engineering ${name}`),
    );
    expect(await commands.complete('/completable-prompt Sales ')).not.toContain(
      '/completable-prompt Sales Alice',
    );
    expect(await parts('/completable-prompt Engineering Alice')).toMatchObject([
      { text: expect.stringContaining('Alice') },
    ]);
  });
});
