import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import type { HttpServerConfig, StdioServerConfig } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { plugged } from './plugged.ts';
import { answeringServer } from './scripted.ts';

/** One kind of server: how it is made, how it is reached, what it speaks. */
export interface MatrixRow {
  readonly made: 'v1' | 'v2' | 'raw';
  readonly transport: 'stdio' | 'http';
  readonly era: 'legacy' | 'modern';
}

/** Every kind there is: version 1 of the SDK knows no newer era. */
export const ALL: readonly MatrixRow[] = (['v1', 'v2', 'raw'] as const).flatMap((made) =>
  (['stdio', 'http'] as const).flatMap((transport) =>
    (made === 'v1' ? (['legacy'] as const) : (['legacy', 'modern'] as const)).map((era) => ({
      made,
      transport,
      era,
    })),
  ),
);

interface Started extends AsyncDisposable {
  readonly config: StdioServerConfig | HttpServerConfig;
}

async function start({ made, transport, era }: MatrixRow): Promise<Started> {
  if (made === 'raw') return rawServer(transport, era);
  const file = fileURLToPath(new URL('fixtures/matrix-server.mjs', import.meta.url));
  const args = [file, made, transport, era];
  if (transport === 'stdio')
    return {
      config: { command: process.execPath, args },
      [Symbol.asyncDispose]: async () => undefined,
    };
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return {
    config: { url },
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  };
}

/** The same without any SDK. */
const rawServer = (transport: MatrixRow['transport'], era: MatrixRow['era']) =>
  answeringServer({
    transport,
    era,
    tools: [
      {
        name: 'echo',
        annotations: { readOnlyHint: true },
        onCall: ({ text }) => String(text),
      },
      { name: 'fail', onCall: 'tool-error' },
      {
        name: 'sum',
        outputSchema: { type: 'object' },
        onCall: ({ a, b }) => ({
          content: [],
          structuredContent: { sum: Number(a) + Number(b) },
        }),
      },
      { name: 'wait', onCall: 'never' },
    ],
    prompts: [{ name: 'greet', text: 'Greet', arguments: [{ name: 'name', required: true }] }],
    resources: [{ uri: 'memo://one', mimeType: 'text/plain', text: 'memo' }],
    onRequest: ({ method, params }) => {
      if (method === 'resources/read' && params['uri'] === 'memo://all/7')
        return { contents: [{ uri: 'memo://all/7', mimeType: 'text/plain', text: 'memo' }] };
      return method === 'resources/templates/list'
        ? { resourceTemplates: [{ uriTemplate: 'memo://all/{id}', name: 'all' }] }
        : undefined;
    },
  });

/** What holds whatever the server is made with, however it is reached, whatever it speaks. */
export function describeServer(row: MatrixRow): void {
  const { made, transport, era } = row;
  describe(`a server made with ${made}, over ${transport}, ${era}`, () => {
    const server = async () => {
      const started = await start(row);
      const board = plugged({ id: 'm', server: started.config });
      return {
        ...board,
        config: started.config,
        [Symbol.asyncDispose]: async () => {
          await board[Symbol.asyncDispose]();
          await started[Symbol.asyncDispose]();
        },
      };
    };

    it('lists and calls its tools, typed and as errors', async () => {
      await using board = await server();
      const { tools, problems, callTool } = await board.view.compile();
      expect(problems).toEqual([]);
      expect(tools.map(({ id }) => id.name)).toEqual(['echo', 'fail', 'sum', 'wait']);
      expect(tools[0]!.definition.annotations).toMatchObject({ readOnlyHint: true });
      expect(await callTool('m__echo', { text: 'grüße' })).toMatchObject({
        content: [{ type: 'text', text: 'grüße' }],
      });
      expect((await callTool('m__sum', { a: 2, b: 3 })).structuredContent).toEqual({ sum: 5 });
      expect(await callTool('m__fail', {})).toMatchObject({ isError: true });
      await using lease = await board.pool.acquire({ label: 'm', ...board.config });
      expect(lease.value.info.era).toBe(era);
    });

    it('takes many calls at once, and gives one up without losing the others', async () => {
      await using board = await server();
      const { callTool } = await board.view.compile();
      const stop = new AbortController();
      const given = callTool('m__wait', {}, { signal: stop.signal });
      const many = Array.from({ length: 40 }, async (_, i) => {
        const { content } = await callTool('m__echo', { text: `m${i}` });
        return (content[0] as { readonly text?: string }).text;
      });
      stop.abort(new Error('enough'));
      await expect(given).rejects.toMatchObject({ code: 'aborted' });
      expect(await Promise.all(many)).toEqual(many.map((_, i) => `m${i}`));
      expect(board.pool.inspect()).toHaveLength(1);
    });

    it('has prompts and resources, listed and covered by a template', async () => {
      await using board = await server();
      const { commands, resources } = board.view;
      expect((await commands.list()).map(({ name }) => name)).toEqual(['greet']);
      expect(await commands.resolve('/greet Ann')).toMatchObject({
        ok: true,
        content: [{ type: 'text', text: expect.stringContaining('Ann') }],
      });
      expect(await commands.resolve('/greet')).toMatchObject({ code: 'command-arguments' });
      const completed = await commands.complete('/greet An');
      expect(completed).toEqual(made === 'raw' ? [] : ['/greet Ann', '/greet Anton']);
      expect((await resources.list()).map(({ uri }) => uri)).toEqual(['mcp://m/memo%3A%2F%2Fone']);
      for (const uri of ['mcp://m/memo%3A%2F%2Fone', 'mcp://m/memo%3A%2F%2Fall%2F7'])
        expect(await resources.read(uri)).toMatchObject([{ type: 'resource', uri, text: 'memo' }]);
      await expect(resources.read('mcp://m/none%3A%2F%2Fx')).rejects.toMatchObject({
        code: 'not-found',
      });
    });

    if (transport === 'http') return;
    it('is found again after its process ended', async () => {
      await using board = await server();
      const { callTool } = await board.view.compile();
      process.kill(board.pool.inspect()[0]!.pid!, 'SIGKILL');
      await vi.waitFor(() => expect(board.capability.status().state).toBe('lost'));
      expect(await callTool('m__echo', { text: 'again' })).toMatchObject({
        content: [{ text: 'again' }],
      });
      expect((await board.view.compile()).tools).toHaveLength(4);
    });
  });
}
