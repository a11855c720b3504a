import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { ConnectionPool } from '@patchbay/connection-pool';
import type { Problem, StdioServerConfig } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { textOf } from './case-server.ts';
import { groupMembers } from './servers.ts';

const require = createRequire(import.meta.url);

interface RealServer {
  readonly era: 'legacy' | 'modern';
  readonly tools: number;
  readonly prompts?: number;
  readonly resources?: number;
  /** A tool, its arguments, and what is in its answer. */
  readonly call: readonly [string, Readonly<Record<string, unknown>>, RegExp];
  /** Writes something else than messages, too. */
  readonly isNoisy?: boolean;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const FOLDER = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-real-')));

/** Servers that other people publish, as they are locked here. They are started from their files: nothing is fetched. */
const SERVERS: Readonly<Record<string, RealServer>> = {
  '@modelcontextprotocol/server-everything': {
    era: 'legacy',
    tools: 12,
    prompts: 4,
    resources: 7,
    call: ['echo', { message: 'hi' }, /hi/],
    args: ['stdio'],
  },
  '@modelcontextprotocol/server-filesystem': {
    era: 'legacy',
    tools: 14,
    call: ['read_text_file', { path: join(FOLDER, 'note.txt') }, /a note/],
    args: [FOLDER],
  },
  '@modelcontextprotocol/server-memory': {
    era: 'legacy',
    tools: 9,
    resources: 1,
    call: ['read_graph', {}, /entities/],
    env: { MEMORY_FILE_PATH: join(FOLDER, 'memory.jsonl') },
  },
  '@modelcontextprotocol/server-sequential-thinking': {
    era: 'legacy',
    tools: 1,
    call: [
      'sequentialthinking',
      { thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
      /thoughtNumber/,
    ],
  },
  'mcp-hello-world': {
    era: 'legacy',
    tools: 3,
    prompts: 1,
    resources: 1,
    call: ['add', { a: 2, b: 3 }, /5/],
    isNoisy: true,
  },
  // Its tools ask the network: they are listed, and one is asked wrongly.
  '@upstash/context7-mcp': { era: 'modern', tools: 2, call: ['resolve-library-id', {}, /rgument/] },
};

function start(name: string, { args = [], env }: RealServer): StdioServerConfig {
  const file = require.resolve(`${name}/package.json`);
  const { bin } = require(file) as { readonly bin: Readonly<Record<string, string>> };
  const program = join(dirname(file), Object.values(bin)[0]!);
  return {
    command: process.execPath,
    args: [program, ...args],
    label: name,
    ...(env === undefined ? {} : { env }),
  };
}

describe.each(Object.entries(SERVERS))('%s', (name, server) => {
  const config = start(name, server);

  it('is connected, listed, called, killed, found again, and ended with all that it started', async () => {
    await writeFile(join(FOLDER, 'note.txt'), 'a note');
    const problems: Problem[] = [];
    const pool = new ConnectionPool({ onProblem: (problem) => void problems.push(problem) });
    const lease = await pool.acquire(config);
    const client = lease.value;
    expect(client.info).toMatchObject({ era: server.era, name: expect.any(String) });
    const lists = async () => ({
      tools: (await client.listTools()).items.length,
      prompts: (await client.listPrompts()).items.length,
      resources: (await client.listResources()).items.length,
    });
    const { tools, prompts = 0, resources = 0 } = server;
    const before = await lists();
    expect(before).toEqual({ tools, prompts, resources });

    const [tool, args, answer] = server.call;
    const call = () =>
      client.callTool(tool, args).then(
        (result) => textOf(result),
        (error: Error) => error.message,
      );
    expect(await call()).toMatch(answer);
    expect(await Promise.all(Array.from({ length: 20 }, call))).toHaveLength(20);

    const stop = AbortSignal.abort(new Error('not wanted'));
    await expect(client.callTool(tool, args, { signal: stop })).rejects.toMatchObject({
      code: 'aborted',
    });
    const { pid } = pool.inspect()[0]!;
    process.kill(pid!, 'SIGKILL');
    await vi.waitFor(() => expect(pool.status(config)).toMatchObject({ state: 'lost' }));
    expect(await lists()).toEqual(before);
    const { pid: again } = pool.inspect()[0]!;
    expect(again).not.toBe(pid);
    expect(await call()).toMatch(answer);

    await lease.close();
    await pool.close();
    expect([pid, again].map((one) => groupMembers(one!))).toEqual([0, 0]);
    const noise = { source: name, severity: 'warning', code: 'protocol-error' };
    expect(problems).toMatchObject(server.isNoisy === true ? [noise] : []);
  });
});

it('leaves no file behind', () => rm(FOLDER, { recursive: true }));
