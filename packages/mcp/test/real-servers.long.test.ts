import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ToolResult } from '@patchbay/protocols';
import { afterAll, describe, expect, it } from 'vitest';

import { npmServer, plugged } from './plugged.ts';

const FOLDER = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-real-')));
await writeFile(join(FOLDER, 'note.txt'), 'a note');
afterAll(() => rm(FOLDER, { recursive: true }));

interface RealServer {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly era?: 'modern';
  readonly tools: number;
  readonly prompts?: number;
  readonly resources?: number;
  /** A tool, its arguments, and what its answer is like. */
  readonly call: readonly [string, Readonly<Record<string, unknown>>, object];
}

const text = (matching: RegExp) => ({ content: [{ text: expect.stringMatching(matching) }] });

/** Servers that other people publish, as they are locked here: started from their files, nothing is fetched. */
const SERVERS: Readonly<Record<string, RealServer>> = {
  '@modelcontextprotocol/server-everything': {
    args: ['stdio'],
    tools: 12,
    prompts: 4,
    resources: 7,
    call: ['echo', { message: 'hi' }, text(/hi/)],
  },
  '@modelcontextprotocol/server-filesystem': {
    args: [FOLDER],
    tools: 14,
    call: [
      'read_text_file',
      { path: join(FOLDER, 'note.txt') },
      { structuredContent: { content: 'a note' } },
    ],
  },
  '@modelcontextprotocol/server-memory': {
    env: { MEMORY_FILE_PATH: join(FOLDER, 'memory.jsonl') },
    tools: 9,
    resources: 1,
    call: ['read_graph', {}, { structuredContent: { entities: [], relations: [] } }],
  },
  '@modelcontextprotocol/server-sequential-thinking': {
    tools: 1,
    call: [
      'sequentialthinking',
      { thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
      { structuredContent: { thoughtNumber: 1 } },
    ],
  },
  '@modelcontextprotocol/server-basic-vanillajs': {
    args: ['--stdio'],
    tools: 1,
    resources: 1,
    call: ['get-time', {}, text(/\d{4}-\d\d-\d\d/)],
  },
  '@modelcontextprotocol/server-system-monitor': {
    args: ['--stdio'],
    tools: 2,
    resources: 1,
    call: ['get-system-info', {}, text(/cpu/i)],
  },
  'mcp-hello-world': {
    tools: 3,
    prompts: 1,
    resources: 1,
    call: ['add', { a: 2, b: 3 }, text(/5/)],
  },
  // Its tools ask the network: one is asked wrongly.
  '@upstash/context7-mcp': {
    era: 'modern',
    tools: 2,
    call: ['resolve-library-id', {}, { isError: true }],
  },
};

describe.each(Object.entries(SERVERS))('%s', (name, server) => {
  it('is listed, called and read through capability and view', async () => {
    await using board = plugged({ id: 'real', server: npmServer(name, server.args, server.env) });
    const { tools, callTool } = await board.view.compile();
    const [tool, args, answer] = server.call;
    expect(tools).toHaveLength(server.tools);
    const result: ToolResult = await callTool(`real__${tool}`, args).catch((error: Error) => ({
      isError: true,
      content: [{ type: 'text', text: error.message }],
    }));
    expect(result).toMatchObject(answer);
    expect(await board.view.commands.list()).toHaveLength(server.prompts ?? 0);
    const resources = await board.view.resources.list();
    expect(resources).toHaveLength(server.resources ?? 0);
    for (const { uri } of resources)
      expect(await board.view.resources.read(uri)).toMatchObject([{ type: 'resource', uri }]);
    await using lease = await board.pool.acquire({
      label: 'real',
      ...npmServer(name, server.args, server.env),
    });
    expect(lease.value.info.era).toBe(server.era ?? 'legacy');
    expect(board.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  });
});
