import { fileURLToPath } from 'node:url';

import type { ToolResult } from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

import { plugged } from './plugged.ts';
import { answeringServer } from './scripted.ts';

/** The server of a public report. */
const reported = (report: string) =>
  plugged({
    id: 'case',
    server: {
      command: process.execPath,
      args: [fileURLToPath(new URL(`fixtures/${report}/server.mjs`, import.meta.url))],
    },
  });
const lengthOf = (result: ToolResult) =>
  result.content.reduce((sum, part) => sum + ('text' in part ? (part.text ?? '').length : 0), 0);

describe.concurrent('vercel-ai-15285: content of every kind', () => {
  it('arrives typed, and what is not understood arrives whole', async () => {
    await using board = reported('vercel-ai-15285');
    const call = async (name: string) => (await board.capability.callTool(name, {})).content;
    const image = { type: 'image', data: expect.any(String), mimeType: 'image/png' };
    const audio = { type: 'audio', data: expect.any(String), mimeType: 'audio/wav' };
    const note = {
      type: 'resource',
      uri: 'fix://note.md',
      mimeType: 'text/markdown',
      text: '# note',
    };
    const blob = {
      type: 'resource',
      uri: 'fix://p.png',
      mimeType: 'image/png',
      data: expect.any(String),
    };
    const link = {
      type: 'resource_link',
      uri: 'fix://big.csv',
      name: 'big.csv',
      mimeType: 'text/csv',
      description: 'rows',
      size: 123_456,
    };
    const text = { type: 'text', text: 'plain' };
    expect(await call('text')).toEqual([text]);
    expect(await call('image')).toEqual([image]);
    expect(await call('audio')).toEqual([audio]);
    expect(await call('resource-text')).toEqual([note]);
    expect(await call('resource-blob')).toEqual([blob]);
    expect(await call('resource_link')).toEqual([link]);
    expect(await call('mixed')).toEqual([text, image, audio, note, blob, link]);
    expect(await call('empty')).toEqual([]);
    expect(await call('unknown')).toEqual([
      { type: 'hologram', raw: { type: 'hologram', beam: 1 } },
    ]);
    expect(await call('no-mime')).toEqual([
      { type: 'image', raw: { type: 'image', data: expect.any(String) } },
    ]);
    // Whether it is base64 is found out by whoever decodes it.
    expect(await call('bad-base64')).toMatchObject([{ type: 'image', data: '***not base64***' }]);
    expect(await call('text')).toEqual([text]);
  });
});

describe.concurrent('langchain-mcp-adapters-283: structured content', () => {
  it('is what the server sent, with or without content beside it', async () => {
    await using board = reported('langchain-mcp-adapters-283');
    const call = (name: string) => board.capability.callTool(name, {});
    const rows = { rows: [1, 2] };
    expect(await call('only')).toEqual({ content: [], structuredContent: rows });
    expect(await call('no-content')).toEqual({ content: [], structuredContent: rows });
    expect(await call('both')).toEqual({
      content: [{ type: 'text', text: '2 rows' }],
      structuredContent: rows,
    });
    expect(await call('meta')).toEqual({
      content: [{ type: 'text', text: 'ok' }],
      structuredContent: { a: 1 },
      meta: { trace: 'secret-trace' },
    });
  });

  it.each([[null], [0], [false], [''], [[1, [2]]], [{ a: { b: null } }], ['text']])(
    'may be any JSON value, like %j',
    async (structuredContent) => {
      await using server = await answeringServer({
        era: 'modern',
        tools: [{ name: 'any', onCall: () => ({ content: [], structuredContent }) }],
      });
      await using board = plugged({ server: server.config });
      expect(await board.capability.callTool('any', {})).toEqual({
        content: [],
        structuredContent,
      });
    },
  );
});

describe.concurrent('typescript-sdk-1943: an error is never measured by the schema of success', () => {
  it('comes as the server said it; what does not fit its schema comes too', async () => {
    await using board = reported('typescript-sdk-1943');
    const compiled = await board.view.compile();
    const call = (mode: string) => compiled.callTool('case__weather', { mode });
    expect(await call('error-structured')).toEqual({
      content: [{ type: 'text', text: 'station offline' }],
      structuredContent: { code: 'OFFLINE' },
      isError: true,
    });
    expect(await call('error-text')).toEqual({
      content: [{ type: 'text', text: 'station offline' }],
      isError: true,
    });
    expect((await call('mismatch')).structuredContent).toEqual({ temp: 'hot' });
    expect((await call('missing')).structuredContent).toBeUndefined();
    expect((await call('extra')).structuredContent).toMatchObject({ temp: 21 });
    expect((await call('ok')).structuredContent).toMatchObject({ temp: 21 });
  });
});

describe.concurrent('llm-agent-231: what a tool calls an error, and what the protocol does', () => {
  it('are told apart, with code, server and tool', async () => {
    await using board = reported('llm-agent-231');
    const call = (name: string) => board.capability.callTool(name, {});
    expect(await call('tool-error')).toEqual({
      content: [{ type: 'text', text: 'quota exceeded: retry in 30 s' }],
      isError: true,
    });
    expect(await call('tool-error-empty')).toEqual({ content: [], isError: true });
    for (const [name, rpcCode] of [
      ['rpc-error', -32_000],
      ['rpc-invalid', -32_602],
    ] as const) {
      await expect(call(name)).rejects.toMatchObject({
        code: 'protocol-error',
        details: { rpcCode },
        message: expect.stringMatching(new RegExp(`"${name}" of "case"`)),
      });
    }
    expect((await call('ok')).isError).toBeUndefined();
  });
});

describe.concurrent('qwen-code-2439: large results', () => {
  it('arrive whole, whoever asks directly, and the connection stays', async () => {
    await using board = reported('qwen-code-2439');
    const big = await board.capability.callTool('big', { n: 5_000_000 });
    expect(lengthOf(big)).toBeGreaterThanOrEqual(5_000_000);
    expect((await board.capability.callTool('many', {})).content).toHaveLength(50_000);
    const failed = await board.capability.callTool('bigerror', {});
    expect(failed.isError).toBe(true);
    expect(board.pool.inspect()).toMatchObject([{ state: 'ready' }]);
  });
});

describe.concurrent('opencode-24414: text where messages should be', () => {
  it('costs nothing but one problem that names the server', async () => {
    await using board = reported('opencode-24414');
    const compiled = await board.view.compile();
    expect(compiled.tools.map(({ id }) => id.name)).toContain('echo');
    for (let i = 0; i < 3; i++)
      expect((await compiled.callTool('case__echo', { text: `${i}` })).content).toHaveLength(1);
    expect(board.problems).toMatchObject([{ source: 'case', severity: 'warning' }]);
    expect(board.problems[0]!.message.length).toBeLessThan(500);
  });
});

describe.concurrent('tools that can only be run as tasks', () => {
  it('are left out, with a problem that says why; others that may be are not', async () => {
    await using server = await answeringServer({
      onRequest: ({ method }) =>
        method === 'tools/list'
          ? {
              tools: (['required', 'optional', 'forbidden'] as const).map((taskSupport) => ({
                name: taskSupport,
                inputSchema: { type: 'object' },
                execution: { taskSupport },
              })),
            }
          : undefined,
    });
    await using board = plugged({ id: 'lab', server: server.config });
    const { tools, problems } = await board.view.compile();
    expect(tools.map(({ id }) => id.name)).toEqual(['forbidden', 'optional']);
    expect(problems).toMatchObject([
      {
        source: 'lab',
        severity: 'warning',
        message: expect.stringMatching(/"required".*run as a task/),
      },
    ]);
  });
});

describe.concurrent.each(['legacy', 'modern'] as const)(
  'a server that bends the rules, %s',
  (era) => {
    it.each(['stdio', 'http'] as const)('costs only what is bent, over %s', async (transport) => {
      const odd = [
        { type: 'hologram', beam: 1 },
        { type: 'text', text: 'good' },
      ];
      await using server = await answeringServer({
        era,
        transport,
        tools: [{ name: 'good' }],
        prompts: [{ name: 'p', text: '' }],
        resources: [{ uri: 'memo://one', text: '' }],
        onRequest: ({ method, params }) => {
          const answers: Readonly<Record<string, object>> = {
            // Without hints, although a newer server must give them.
            'tools/list': { tools: [{ name: 'good', inputSchema: null }, { title: 'no name' }, 7] },
            'tools/call': { content: odd, structuredContent: [1], _meta: { args: params } },
            'prompts/get': { messages: [{ role: 'robot', content: odd }] },
            'resources/read': {
              contents: [{ uri: 'memo://one' }, { uri: 'memo://one', text: 'x' }],
            },
          };
          return answers[method];
        },
      });
      await using board = plugged({ id: 'odd', server: server.config });
      const { tools, problems, callTool } = await board.view.compile();
      expect(tools.map(({ id }) => id.name)).toEqual(['good']);
      expect(problems.map(({ message }) => message)).toEqual([
        expect.stringContaining('tools[1]'),
        expect.stringContaining('tools[2]'),
      ]);
      const parts = [{ type: 'hologram', raw: odd[0] }, odd[1]];
      expect(await callTool('odd__good', {})).toMatchObject({
        content: parts,
        structuredContent: [1],
        meta: { args: { name: 'good' } },
      });
      expect(await board.view.commands.resolve('/p')).toMatchObject({ ok: true, content: parts });
      expect(await board.view.resources.read('mcp://odd/memo%3A%2F%2Fone')).toMatchObject([
        { type: 'unknown' },
        { text: 'x' },
      ]);
      expect(board.pool.inspect()).toMatchObject([{ state: 'ready' }]);
    });
  },
);
