import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { CallContext, Problem, Tool } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it, vi } from 'vitest';

/** The server of a public report behind a registry, with the log that it writes. */
async function plugged(path: string, env: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'patchbay-case-'));
  const file = join(folder, 'log');
  const connections = new ConnectionPool({ backOff: { firstMs: 1, maxMs: 20 } });
  const problems: Problem[] = [];
  const registry = new ExtensionRegistry({ onProblem: (problem) => void problems.push(problem) });
  const server = {
    command: process.execPath,
    args: [fileURLToPath(new URL(`fixtures/${path}`, import.meta.url))],
    env: { ...env, FIXTURE_LOG: file },
  };
  const capability = new McpServerCapability({ id: 'case', server, connections });
  registry.register(capability);
  return {
    view: registry.view(),
    config: { label: 'case', ...server },
    capability,
    connections,
    problems,
    logged: async (event: string) => {
      const lines = (await readFile(file, 'utf8').catch(() => '')).trim().split('\n');
      const parsed = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as unknown);
      return (parsed as { readonly event: string }[]).filter((line) => line.event === event);
    },
    [Symbol.asyncDispose]: async () => {
      await registry.close();
      await connections.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
const names = ({ tools }: { readonly tools: readonly Tool[] }) => tools.map(({ id }) => id.name);
const context = (callId: string): CallContext => ({ scope: {}, callId });

describe.concurrent('kimi-code-1138: a server whose tools change', () => {
  it.each([['after'], ['before'], ['undeclared']])('told %s the answer', async (mode) => {
    await using server = await plugged('kimi-code-1138/server.mjs', { FIXTURE_MODE: mode });
    const { view } = server;
    const before = await view.compile();
    expect(names(before)).toEqual(['disable', 'enable']);
    await before.callTool('case__enable', {});
    await vi.waitFor(async () => expect(names(await view.compile())).toContain('dynamic_echo'));
    const compiled = await view.compile();
    const stale = compiled.tools.find(({ id }) => id.name === 'dynamic_echo')!;
    expect(await compiled.callTool('case__dynamic_echo', {})).toMatchObject({
      content: [{ text: 'dynamic' }],
    });
    await compiled.callTool('case__disable', {});
    await vi.waitFor(async () =>
      expect(names(await view.compile())).toEqual(['disable', 'enable']),
    );
    await expect(stale.call({}, context('late'))).rejects.toMatchObject({
      code: 'tool-unavailable',
      message: expect.stringContaining('"dynamic_echo"'),
    });
  });

  it('25 notifications cost few listings, and the last state wins', async () => {
    await using server = await plugged('kimi-code-1138/server.mjs');
    const { view } = server;
    const compiled = await view.compile();
    await using lease = await server.connections.acquire(server.config);
    let sent = 0;
    const all = new Promise<void>((resolve) => {
      lease.value.onNotification((method) => {
        if (method === 'notifications/tools/list_changed' && ++sent === 25) resolve();
      });
    });
    let heard = 0;
    const stop = new AbortController();
    const listening = (async () => {
      for await (const { kind } of view.changes({ signal: stop.signal })) {
        if (kind !== 'tools_changed') continue;
        heard++;
        await view.compile();
      }
    })();
    const started = performance.now();
    await compiled.callTool('case__enable', {});
    await all;
    // A window is 100 ms: one is told at its beginning, one at its end for all that followed.
    const windows = Math.ceil((performance.now() - started) / 100);
    expect(names(await view.compile())).toContain('dynamic_echo');
    stop.abort();
    await listening;
    expect(heard).toBeGreaterThan(0);
    expect(heard).toBeLessThanOrEqual(1 + windows);
    // One at first, one for each that was told, one at last.
    expect((await server.logged('list')).length).toBeLessThanOrEqual(2 + heard);
  });
});

describe.concurrent('vercel-ai-19240: lists of several pages', () => {
  it('are whole, in every kind, and read again as a whole', async () => {
    await using server = await plugged('vercel-ai-19240/server.mjs');
    const { view } = server;
    const compiled = await view.compile();
    expect(names(compiled)).toEqual(['t1', 't2', 't3', 't4', 't5', 't6', 't7']);
    expect(await compiled.callTool('case__t7', {})).toMatchObject({
      content: [{ text: 'called t7' }],
    });
    expect((await view.commands.list()).map(({ name }) => name)).toEqual([
      'p1',
      'p2',
      'p3',
      'p4',
      'p5',
    ]);
    expect((await view.resources.list()).map(({ uri }) => uri)).toEqual(
      [1, 2, 3, 4, 5].map((i) => `mcp://case/fix%3A%2F%2Fr${i}`),
    );
    expect(await server.logged('tools/list')).toHaveLength(3);
    process.kill(server.connections.inspect()[0]!.pid!, 'SIGKILL');
    await vi.waitFor(() => expect(server.capability.status()).toMatchObject({ state: 'lost' }));
    await compiled.callTool('case__t1', {});
    expect(names(await view.compile())).toHaveLength(7);
    expect(await server.logged('tools/list')).toHaveLength(6);
  });
});

describe.concurrent('mcpx-28: one bad entry among good ones', () => {
  it('costs only itself, and is named', async () => {
    await using server = await plugged('mcpx-28/server.mjs');
    const compiled = await server.view.compile();
    const good = 'good1 good2 in-empty in-missing in-null out-bad-ref out-no-type'.split(' ');
    expect(names(compiled)).toEqual(good);
    for (const { definition, id } of compiled.tools)
      expect(await compiled.callTool(definition.name, {})).toMatchObject({
        content: [{ text: `called ${id.name}` }],
      });
    expect(compiled.problems).toMatchObject([
      { source: 'case', message: expect.stringMatching(/tools\[6\].*no name/) },
    ]);
  });
});

describe('claude-code-57951: prompts as slash commands', () => {
  it('asks for what is missing here, and sends what was given as text', async () => {
    await using server = await plugged('claude-code-57951/server.mjs');
    const { view } = server;
    expect((await view.commands.list()).map(({ name }) => name)).toEqual([
      'bare',
      'greet',
      'listless',
      'review',
    ]);
    expect(await view.commands.resolve('/review')).toMatchObject({
      ok: false,
      code: 'command-arguments',
      message: expect.stringContaining('`repo`') as unknown,
    });
    expect(await server.logged('get')).toEqual([]);

    const lines = [
      '/review acme/x',
      '/review repo=acme/x depth=2',
      '/review --repo="a b"',
      '/greet',
      '/greet ""',
      '/bare',
      '/listless',
    ];
    for (const line of lines) {
      expect(await view.commands.resolve(line), line).toMatchObject({ ok: true });
    }
    expect(await server.logged('get')).toMatchObject([
      { name: 'review', arguments: { repo: 'acme/x' } },
      { name: 'review', arguments: { repo: 'acme/x', depth: '2' } },
      { name: 'review', arguments: { repo: 'a b' } },
      { name: 'greet', arguments: {} },
      { name: 'greet', arguments: { who: '' } },
      { name: 'bare', arguments: {} },
      { name: 'listless', arguments: {} },
    ]);
  });

  it('says whose error it is when the server refuses', async () => {
    await using server = await plugged('claude-code-57951/server.mjs');
    const refused = await server.view.commands.resolve('/review repo=""');
    expect(refused).toMatchObject({ ok: false });
    expect(await server.logged('get')).toMatchObject([{ arguments: { repo: '' } }]);
    const { message } = refused as { readonly message: string };
    expect(message).toContain('review');
    expect(message).toContain('case');
    expect(message).toContain('Invalid arguments for prompt review: repo');
  });
});
