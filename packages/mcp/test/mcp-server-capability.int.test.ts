import { createRequire } from 'node:module';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import { McpServerCapability, type McpServerOptions } from '@patchbay/mcp';
import type { Problem, StdioServerConfig, Tool } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer, type ScriptedTool } from '@patchbay/testkit';
import { describe, expect, it, vi } from 'vitest';

const ECHO: ScriptedTool = { name: 'echo' };
const DIE: ScriptedTool = { name: 'die', onCall: 'die-after-execution' };
const npmServer = (name: string, ...args: string[]): StdioServerConfig => {
  const folder = dirname(
    createRequire(import.meta.url).resolve(`@modelcontextprotocol/${name}/package.json`),
  );
  return { command: process.execPath, args: [join(folder, 'dist/index.js'), ...args] };
};

function board(options: Omit<McpServerOptions, 'connections'>, poolOptions: PoolOptions = {}) {
  const pool = new ConnectionPool({ backOff: { firstMs: 1, maxMs: 20 }, ...poolOptions });
  const problems: Problem[] = [];
  const registry = new ExtensionRegistry({ onProblem: (problem) => void problems.push(problem) });
  const capability = new McpServerCapability({ ...options, connections: pool });
  registry.register(capability);
  return {
    pool,
    registry,
    capability,
    problems,
    [Symbol.asyncDispose]: async () => {
      await registry.close();
      await pool.close();
    },
  };
}
const names = ({ tools }: { readonly tools: readonly Tool[] }) =>
  tools.map(({ definition }) => definition.name);

describe('a server through registry and pool', () => {
  it('lists and calls the file server', async () => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-mcp-')));
    try {
      await writeFile(join(folder, 'a.txt'), 'hello');
      await using plugged = board({ id: 'files', server: npmServer('server-filesystem', folder) });
      const view = await plugged.registry.view({ session: 's' }).compile();
      expect(view.problems).toEqual([]);
      expect(names(view)).toContain('files__read_text_file');
      const result = await view.callTool('files__read_text_file', { path: join(folder, 'a.txt') });
      expect(result.content[0]).toEqual({ type: 'text', text: 'hello' });
      expect(result.structuredContent).toEqual({ content: 'hello' });
      expect(await view.callTool('files__read_text_file', { path: '/etc/passwd' })).toMatchObject({
        isError: true,
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('gives tools, prompts and resources of the everything server', async () => {
    await using plugged = board({ id: 'all', server: npmServer('server-everything', 'stdio') });
    const view = plugged.registry.view();
    const compiled = await view.compile();
    expect(names(compiled)).toContain('all__echo');
    expect(await compiled.callTool('all__echo', { message: 'hi' })).toMatchObject({
      content: [{ type: 'text', text: 'Echo: hi' }],
    });
    expect(
      plugged.problems.filter(({ message }) => message.includes('run as a task')).length,
    ).toBeLessThanOrEqual(1);
    const commands = await view.commands.list();
    expect(commands.map(({ name }) => name)).toContain('args-prompt');
    expect(await view.commands.resolve('/args-prompt Berlin "the state"')).toMatchObject({
      ok: true,
      content: [{ type: 'text', text: expect.stringContaining('Berlin') }],
    });
    expect(await view.commands.resolve('/args-prompt')).toMatchObject({
      ok: false,
      message: expect.stringContaining('`city`'),
    });
    const [resource] = await view.resources.list();
    expect(resource?.uri).toMatch(/^mcp:\/\/all\//);
    expect(await view.resources.exists(resource!.uri)).toBe(true);
    expect((await view.resources.read(resource!.uri))[0]).toMatchObject({ type: 'resource' });
  });

  it('costs one listing for a hundred sessions, and none when nothing changed', async () => {
    await using server = await scriptedServer({ tools: [ECHO] });
    await using plugged = board({ id: 'raw', server: server.config });
    const views = Array.from({ length: 100 }, (_, i) =>
      plugged.registry.view({ session: `s${i}` }),
    );
    const compiled = await Promise.all(views.map((view) => view.compile()));
    expect(new Set(compiled.map(({ tools }) => tools[0])).size).toBe(1);
    await Promise.all(views.map((view) => view.compile()));
    expect(server.requests.filter((method) => method === 'tools/list')).toHaveLength(1);
  });

  it('kimi-code-1138: shows a changed tool list at the next compile, keeps the definitions of the rest', async () => {
    await using server = await scriptedServer({ tools: [ECHO] });
    await using plugged = board({ id: 'raw', server: server.config });
    const view = plugged.registry.view();
    const before = await view.compile();
    const stop = new AbortController();
    const changes = view.changes({ signal: stop.signal })[Symbol.asyncIterator]();
    const heard = (async () => {
      for (;;) {
        const { value } = await changes.next();
        if (value?.kind === 'tools_changed') return;
      }
    })();
    server.setTools([ECHO, { name: 'added' }]);
    await heard;
    stop.abort();
    const after = await view.compile();
    expect(names(after)).toContain('raw__added');
    const echo = ({ tools }: typeof after) =>
      tools.find(({ id }) => id.name === 'echo')?.definition;
    expect(echo(after)).toBe(echo(before));
  });

  it('keeps its list when it cannot be read again, and says so', async () => {
    let broken = false;
    await using server = await scriptedServer({
      tools: [ECHO],
      methods: {
        'tools/list': (_, usual) => {
          if (broken) throw new Error('The list is broken.');
          return usual();
        },
      },
    });
    await using plugged = board({ id: 'raw', server: server.config });
    const view = plugged.registry.view();
    expect(names(await view.compile())).toEqual(['raw__echo']);
    broken = true;
    server.notify('notifications/tools/list_changed');
    await vi.waitFor(async () => expect((await view.compile()).problems).toHaveLength(1));
    expect(names(await view.compile())).toEqual(['raw__echo']);
    expect(plugged.problems).toMatchObject([
      { source: 'raw', code: 'protocol-error', message: expect.stringContaining('tools/list') },
    ]);
  });

  it('keeps the tools while a lost server has not been used again, and rebuilds it at the next call', async () => {
    await using server = await scriptedServer({ tools: [ECHO, DIE] });
    await using plugged = board({ id: 'raw', server: server.config });
    const view = plugged.registry.view();
    const compiled = await view.compile();
    await expect(compiled.callTool('raw__die', {})).rejects.toMatchObject({
      code: 'outcome-unknown',
    });
    expect(plugged.capability.status()).toMatchObject({ state: 'lost' });
    const lost = await view.compile();
    expect(names(lost)).toEqual(names(compiled));
    expect(await lost.callTool('raw__echo', { text: 'back' })).toMatchObject({
      content: [{ text: '{"text":"back"}' }],
    });
    expect(plugged.capability.status()).toMatchObject({ state: 'ready' });
    expect(names(await view.compile())).toEqual(names(compiled));
  });

  it('leaves out the tools of a server that cannot be rebuilt, and says when it is tried again', async () => {
    await using server = await scriptedServer({ tools: [ECHO, DIE] });
    await using plugged = board(
      { id: 'raw', server: server.config },
      { backOff: { attempts: 2, firstMs: 1, maxMs: 60_000 }, random: () => 1 },
    );
    const view = plugged.registry.view();
    const compiled = await view.compile();
    await expect(compiled.callTool('raw__die', {})).rejects.toMatchObject({
      code: 'outcome-unknown',
    });
    await server.close();
    expect(names(await view.compile())).toEqual(names(compiled));
    await expect(compiled.callTool('raw__echo', {})).rejects.toMatchObject({
      code: 'connect-failed',
    });
    expect(plugged.capability.status()).toMatchObject({
      state: 'degraded',
      retryAt: expect.any(String),
    });
    const without = await view.compile();
    expect(without.tools).toEqual([]);
    expect(without.problems[0]).toMatchObject({ source: 'raw', retryAt: expect.any(String) });
  });

  it('is only a problem if it cannot be reached', async () => {
    await using plugged = board(
      { id: 'gone', server: { command: 'no-such-command-x' } },
      { backOff: { firstMs: 60_000 } },
    );
    const view = plugged.registry.view();
    const compiled = await view.compile();
    expect(compiled.tools).toEqual([]);
    expect(compiled.problems).toMatchObject([
      {
        source: 'gone',
        code: 'connect-failed',
        since: expect.any(String),
        retryAt: expect.any(String),
      },
    ]);
    expect(compiled.problems[0]?.message).toContain('no-such-command-x');
    expect(compiled.instructions.at(-1)?.text).toContain('gone');
    expect(await view.compile()).toBe(compiled);
  });
});

describe('options', () => {
  it('offers only what the filter lets through', async () => {
    const offered = ['echo', 'slow', 'huge', 'html', 'never'];
    await using server = await scriptedServer({ tools: offered.map((name) => ({ name })) });
    await using plugged = board({
      id: 'raw',
      server: server.config,
      include: ['echo', 'slow', 'h*'],
      exclude: ['html'],
    });
    expect(names(await plugged.registry.view().compile())).toEqual([
      'raw__echo',
      'raw__huge',
      'raw__slow',
    ]);
  });

  it('does not start a lazy server before its first call, then corrects its list', async () => {
    const tools = [{ name: 'echo', inputSchema: { type: 'object' } }];
    await using server = await scriptedServer({ tools: [ECHO, DIE] });
    await using plugged = board({ id: 'raw', server: server.config, lazy: true, tools });
    const view = plugged.registry.view();
    const compiled = await view.compile();
    expect(names(compiled)).toEqual(['raw__echo']);
    expect(server.connections).toBe(0);
    expect(await compiled.callTool('raw__echo', { text: 'hi' })).toMatchObject({
      content: [{ text: '{"text":"hi"}' }],
    });
    expect(names(await view.compile())).toEqual(['raw__die', 'raw__echo']);
  });

  it('keeps the lists of identities apart', async () => {
    await using server = await scriptedServer({ tools: [ECHO] });
    await using plugged = board({ id: 'raw', server: server.config });
    for (const id of ['ann', 'bob', 'ann'])
      await plugged.registry.view({}, { identity: { id } }).compile();
    expect(plugged.pool.inspect()).toHaveLength(2);
  });
});
