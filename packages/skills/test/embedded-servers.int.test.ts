import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import {
  changeSource,
  defineTool,
  PatchbayError,
  type Capability,
  type ChangeObservable,
  type ExtensionView,
  type ServerFactory,
  type Tool,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability, skillConsents } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { scriptedServer } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { benchFolder, callTool, type BenchFolder } from './bench-folder.ts';

let bench: BenchFolder;
let pool: ConnectionPool;
let registry: ExtensionRegistry;

beforeEach(async () => {
  bench = await benchFolder();
  pool = new ConnectionPool({ backOff: { firstMs: 1, maxMs: 20 } });
  registry = new ExtensionRegistry({ onProblem: () => undefined });
});
afterEach(async () => {
  await registry.close();
  await pool.close();
  await bench.remove();
});

const servers: ServerFactory = (id, server) =>
  new McpServerCapability({ id, server, connections: pool });
function plug(factory: ServerFactory = servers, trusted = true): ExtensionView {
  registry.register(localSkills({ id: 'mine', folder: bench.root, trusted }));
  registry.register(new SkillManagerCapability({ servers: factory }));
  return registry.view({ session: 's', agent: 'coder' });
}
const fileServer = () => ({
  command: process.execPath,
  args: [
    join(
      dirname(
        createRequire(import.meta.url).resolve(
          '@modelcontextprotocol/server-filesystem/package.json',
        ),
      ),
      'dist/index.js',
    ),
    bench.root,
  ],
});
const toolNames = async (view: ExtensionView) =>
  (await view.compile()).tools.map(({ definition }) => definition.name);
const own = ['activate_skill', 'list_skills', 'read_skill_file'];

describe('a server that a skill brings', () => {
  it('is there while its skill is in force, with the tools that the skill wants of it', async () => {
    await bench.skill('files', 'allowed_tools: [read_*, list_directory]\n');
    await bench.write(
      'files/mcp.json',
      JSON.stringify({
        disk: { ...fileServer(), includeTools: ['*_text_file', 'list_directory'] },
      }),
    );
    const view = plug();
    expect(await toolNames(view)).toEqual(own);
    await callTool(view, 'activate_skill', { name: 'files' });
    expect(await toolNames(view)).toEqual([
      'activate_skill',
      'files-disk__list_directory',
      'files-disk__read_text_file',
      'list_skills',
      'read_skill_file',
    ]);
    const path = join(bench.root, 'files/SKILL.md');
    const read = await callTool(view, 'files-disk__read_text_file', { path });
    expect(read.text).toContain('Do files.');
    expect(await toolNames(registry.view({ session: 's', agent: 'other' }))).toEqual(own);
    expect(await toolNames(registry.view({ session: 't' }))).toEqual(own);
  });

  it('costs nobody but itself when it cannot be started', async () => {
    await bench.skill(
      'broken',
      'always_active: true\nmcpServers:\n  gone:\n    command: no-such-command-x\n',
    );
    await bench.skill('fine');
    const view = plug();
    const { tools, problems } = await view.compile();
    expect(tools.map(({ definition }) => definition.name)).toEqual(own);
    expect(problems).toMatchObject([
      { source: 'mine', message: expect.stringContaining('the skill itself works') },
    ]);
    expect((await callTool(view, 'activate_skill', { name: 'broken' })).isError).toBe(false);
    expect((await callTool(view, 'activate_skill', { name: 'fine' })).isError).toBe(false);
  });

  it('is not started for a source that is not trusted, nor without a factory', async () => {
    await bench.skill('a', 'mcpServers:\n  x:\n    command: no-such-command-x\n');
    const { problems } = await plug(servers, false).compile();
    expect(problems.map(({ code }) => code)).toEqual(['servers-refused']);
    await registry.close();
    registry = new ExtensionRegistry({ onProblem: () => undefined });
    registry.register(localSkills({ id: 'mine', folder: bench.root }));
    registry.register(new SkillManagerCapability());
    const view = registry.view();
    expect((await view.compile()).problems.map(({ code }) => code)).toEqual(['skill-servers']);
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain('Do a.');
  });

  it('is said where its configuration is none, and read anew when it was mended', async () => {
    await bench.skill('a', 'always_active: true\n');
    await bench.write('a/mcp.json', '{ "x": { "command": ');
    const view = plug();
    const said = (await view.compile()).problems;
    expect(said.map(({ code }) => code)).toEqual(['invalid-config']);
    expect(said[0]?.message).not.toContain('command');
    await bench.write(
      'a/mcp.json',
      '{ "mcpServers": { "x": {}, "y": { "url": "http://127.0.0.1:1/" } } }',
    );
    const { problems, skills } = await view.compile();
    expect(problems.map(({ code }) => code).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      'connect-failed',
      'invalid-config',
    ]);
    expect(skills[0]?.servers).toEqual({ y: { config: { url: 'http://127.0.0.1:1/' } } });
  });

  it.each([
    ['mcp_servers', 'mcp_servers:\n  disk:\n    command: node\n', undefined],
    ['mcp', 'mcp:\n  disk:\n    command: node\n', undefined],
    ['mcpServers', 'mcpServers:\n  disk:\n    command: node\n', undefined],
    [
      'an mcp.json with comments and trailing commas',
      '',
      '\uFEFF{ // ours\n "mcpServers": { "disk": { "command": "node", }, }, }',
    ],
    ['an mcp.json that is the map itself', '', '{ "disk": { "command": "node" } /* ours */ }'],
  ])('may be written as %s', async (_, frontmatter, mcpJson) => {
    await bench.skill('a', frontmatter);
    if (mcpJson !== undefined) await bench.write('a/mcp.json', mcpJson);
    const { skills, problems } = await plug().compile();
    expect(skills[0]?.servers).toEqual({ disk: { config: { command: 'node' } } });
    expect(problems).toEqual([]);
  });

  it('is named to the model while it is away, and is back with its tools when it can be had', async () => {
    await bench.skill('a', 'always_active: true\n');
    await bench.write('a/mcp.json', JSON.stringify({ x: { command: 'y' } }));
    let away = true;
    const view = plug((id) => ({
      id,
      tools: async () => {
        const retryAt = new Date(Date.now() - 1).toISOString();
        if (away) throw new PatchbayError('connect-failed', 'gone', { details: { retryAt } });
        return [defineTool({ capability: id, name: 'one', call: () => 'x' })];
      },
    }));
    const said = async () => {
      await using turn = view.beginTurn();
      return (await turn.prepare()).instructions.map(({ text }) => text).join('\n');
    };
    const { problems } = await view.compile();
    expect(problems).toMatchObject([{ source: 'mine', code: 'connect-failed' }]);
    expect(await said()).toMatch(/Do a\.[^]*without the tools of its MCP servers.*: x\./);
    away = false;
    expect(await toolNames(view)).toContain('a-x__one');
    expect((await view.compile()).problems).toEqual([]);
    expect(await said()).not.toContain('without the tools');
  });

  it('lives as long as somebody has its skill in force', async () => {
    await bench.skill('a', 'mcpServers:\n  x:\n    command: y\n');
    let made = 0;
    let closed = 0;
    const factory = (id: string): Capability => ({
      id: (made++, id),
      tools: async () => [defineTool({ capability: id, name: 'one', call: () => 'x' })],
      [Symbol.asyncDispose]: async () => void closed++,
    });
    const view = plug(factory);
    const [second, third] = ['t', 'u'].map((session) => registry.view({ session }));
    for (const one of [view, second!, third!]) {
      await callTool(one, 'activate_skill', { name: 'a' });
      expect(await toolNames(one)).toContain('a-x__one');
    }
    registry.state({ session: 's' }).restore({});
    expect(await toolNames(view)).toEqual(own);
    await registry.close({ session: 't' });
    expect([made, closed]).toEqual([1, 0]);
    await registry.close({ session: 'u' });
    expect([made, closed]).toEqual([1, 1]);
    await callTool(view, 'activate_skill', { name: 'a' });
    expect(await toolNames(view)).toContain('a-x__one');
    expect(made).toBe(2);
  });

  it('ends with an edit that changes it or takes it away', async () => {
    const header = 'always_active: true\nmcpServers:\n  x:\n    command: ';
    await bench.skill('a', `${header}y\n`);
    const events: string[] = [];
    const factory: ServerFactory = (id, config) => {
      const { command } = config as { readonly command: string };
      events.push(`made ${command}`);
      return {
        id,
        tools: async () => [defineTool({ capability: id, name: 'one', call: () => 'x' })],
        [Symbol.asyncDispose]: async () => void events.push(`closed ${command}`),
      };
    };
    registry.register(localSkills({ id: 'mine', folder: bench.root, trusted: 'ask' }));
    registry.register(new SkillManagerCapability({ servers: factory, trust: () => true }));
    const view = registry.view({ session: 's' });
    expect(await toolNames(view)).toContain('a-x__one');
    await bench.skill('a', `${header}z\n`);
    expect(await toolNames(view)).toContain('a-x__one');
    expect(events.toSorted()).toEqual(['closed y', 'made y', 'made z']);
    const state = registry.state({ session: 's' });
    await bench.skill('a', `disable-model-invocation: false\nalways_active: false\n`);
    expect(await toolNames(view)).toEqual(own);
    expect(events.at(-1)).toBe('closed z');
    expect(skillConsents(state)).toHaveLength(1);
  });

  it('is not let go of because there are many', async () => {
    const names = Array.from({ length: 70 }, (_, i) => `  x${i}:\n    command: y${i}\n`);
    await bench.skill('a', `always_active: true\nmcpServers:\n${names.join('')}`);
    let closed = 0;
    const view = plug((id) => ({
      id,
      tools: async () => [defineTool({ capability: id, name: 'one', call: () => 'x' })],
      [Symbol.asyncDispose]: async () => void closed++,
    }));
    expect(await toolNames(view)).toHaveLength(own.length + 70);
    expect(closed).toBe(0);
    await registry.close({ session: 's' });
    expect(closed).toBe(70);
  });

  it('holds no connection: the pool closes it when nobody uses it', async () => {
    await pool.close();
    pool = new ConnectionPool({ idleMs: 1 });
    await using server = await scriptedServer({ tools: [{ name: 'scan' }] });
    await bench.skill('a');
    await bench.skill('b');
    for (const name of ['a', 'b'])
      await bench.write(`${name}/mcp.json`, JSON.stringify({ x: server.config }));
    const view = plug();
    await callTool(view, 'activate_skill', { name: 'a' });
    await callTool(view, 'activate_skill', { name: 'b' });
    const { tools } = await view.compile();
    expect(tools.map(({ definition }) => definition.name)).toEqual(
      expect.arrayContaining(['a-x__scan', 'b-x__scan']),
    );
    await registry.close({ session: 's' });
    await expect.poll(() => pool.inspect()).toEqual([]);
  });

  it('that is only named has to be there', async () => {
    await bench.skill('a', 'mcp_servers: [github, gitlab]\n');
    const view = plug();
    const message = async () => (await view.compile()).problems.map((problem) => problem.message);
    expect(await message()).toEqual([expect.stringContaining('not there (github, gitlab)')]);
    registry.register({ id: 'github' });
    expect(await message()).toEqual([expect.stringContaining('not there (gitlab)')]);
    registry.register({ id: 'gitlab' });
    expect(await message()).toEqual([]);
  });

  it('that is composed too deep works and is said; one that contains the manager is stopped', async () => {
    await bench.skill('deep', 'always_active: true\nmcpServers:\n  x:\n    command: y\n');
    const tools = async () => [defineTool({ capability: 'inner', name: 'one', call: () => 'x' })];
    const nested = (ids: readonly string[]): Capability =>
      ids.length === 1 ? { id: ids[0]!, tools } : { id: ids[0]!, children: [nested(ids.slice(1))] };
    const view = plug((id) => nested([id, 'middle', 'inner']));
    const compiled = await view.compile();
    expect(compiled.tools.map(({ definition }) => definition.name)).toContain('inner__one');
    expect(compiled.problems).toMatchObject([
      {
        code: 'composition-depth',
        severity: 'warning',
        message: expect.stringContaining('4 deep'),
      },
    ]);
    await registry.close();
    registry = new ExtensionRegistry({ onProblem: () => undefined });
    registry.register(localSkills({ id: 'mine', folder: bench.root }));
    let manager!: Capability;
    const factory = (id: string): Capability => ({ id, children: [manager] });
    registry.register((manager = new SkillManagerCapability({ servers: factory })));
    const { problems, skills } = await registry.view().compile();
    expect(skills).toHaveLength(1);
    expect(problems).toMatchObject([
      {
        code: 'circular-composition',
        message: expect.stringContaining('skills > deep-x > skills'),
      },
    ]);
    // A skill that is found later is on the same path.
    await bench.skill('later', 'always_active: true\nmcpServers:\n  x:\n    command: y\n');
    expect((await registry.view().compile()).problems.map(({ code }) => code)).toEqual([
      'circular-composition',
      'circular-composition',
    ]);
  });

  it('that changes its tools is heard, and is closed with the manager', async () => {
    await bench.skill('a', 'always_active: true\nmcpServers:\n  x:\n    command: y\n');
    let closed = 0;
    const made: { name: string; emit: () => void }[] = [];
    const factory = (id: string): Capability & ChangeObservable => {
      const source = changeSource(id);
      const server = { name: 'one', emit: () => source.emit('tools_changed') };
      made.push(server);
      return {
        id,
        tools: async () => [defineTool({ capability: id, name: server.name, call: () => 'x' })],
        revision: source.revision,
        changes: source.subscribe,
        [Symbol.asyncDispose]: async () => void closed++,
      };
    };
    const view = plug(factory);
    expect(await toolNames(view)).toContain('a-x__one');
    const changes = view.changes()[Symbol.asyncIterator]();
    const next = changes.next();
    made[0]!.name = 'two';
    made[0]!.emit();
    expect((await next).value).toMatchObject({ capability: 'skills', kind: 'tools_changed' });
    expect(await toolNames(view)).toContain('a-x__two');
    await toolNames(registry.view({ session: 't' }));
    expect(made).toHaveLength(1);
    await changes.return?.();
    await registry.close();
    expect(closed).toBe(1);
  });

  it('that is slow holds up nothing, and joins when it is there', async () => {
    await bench.skill('a', 'always_active: true\nmcpServers:\n  x:\n    command: y\n');
    const answers: ((tools: readonly Tool[]) => void)[] = [];
    const slow = new Promise<readonly Tool[]>((resolve) => answers.push(resolve));
    let tools!: () => Promise<readonly Tool[]>;
    const asked = new Promise<void>((resolve) => {
      tools = () => {
        resolve();
        return slow;
      };
    });
    const view = plug((id) => ({ id, tools }));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const compiling = view.compile();
    try {
      // No time passes while files are read: it is the server that is slow.
      await asked;
      await vi.advanceTimersByTimeAsync(3_000);
    } finally {
      vi.useRealTimers();
    }
    const compiled = await compiling;
    expect(compiled.tools.map(({ definition }) => definition.name)).toEqual(own);
    expect(compiled.problems).toMatchObject([
      { source: 'mine', message: expect.stringContaining('has not answered yet') },
    ]);
    const changes = view.changes()[Symbol.asyncIterator]();
    const next = changes.next();
    answers[0]!([defineTool({ capability: 'a-x', name: 'late', call: () => 'x' })]);
    expect((await next).value).toMatchObject({ capability: 'skills', kind: 'tools_changed' });
    await changes.return?.();
    expect(await toolNames(view)).toContain('a-x__late');
  });
});

describe('what a skill says of its servers', () => {
  const shown = async (view: ExtensionView) =>
    Object.fromEntries(
      (await view.compile()).skills.map(({ name, servers: own_ }) => [name, own_]),
    );

  it('roo-code-2797: what is switched off is not started, in mcp.json and in frontmatter', async () => {
    await bench.skill('json', 'always_active: true\n');
    await bench.write('json/mcp.json', '{ "x": { "command": "no-such-x", "disabled": true } }');
    await bench.skill(
      'yaml',
      'always_active: true\nmcp:\n  x: { command: no-such-x, disabled: true }\n  y: { command: no-such-x, enabled: false }\n',
    );
    const view = plug();
    expect((await view.compile()).problems).toEqual([]);
    expect(await shown(view)).toEqual({ json: undefined, yaml: undefined });
  });

  it('claude-code-17565: ./ and a relative cwd are meant from the folder of the skill', async () => {
    await bench.skill(
      'here',
      'mcp:\n  a: { command: ./run, args: [./x] }\n  b: { command: b, cwd: sub }\n  c: { command: c }\n',
    );
    const folder = join(bench.root, 'here');
    expect(await shown(plug())).toEqual({
      here: {
        a: { config: { command: join(folder, 'run'), args: ['./x'], cwd: folder } },
        b: { config: { command: 'b', cwd: join(folder, 'sub') } },
        c: { config: { command: 'c' } },
      },
    });
  });

  it('a filter is one in every form of a list; arguments that are none are a problem', async () => {
    await bench.skill(
      'a',
      'mcp:\n  x: { command: y, includeTools: "read_*, list" }\n  z: { command: y, args: -v }\n',
    );
    const view = plug();
    expect(await shown(view)).toEqual({
      a: { x: { config: { command: 'y' }, includeTools: ['read_*', 'list'] } },
    });
    expect((await view.compile()).problems).toMatchObject([
      { code: 'invalid-config', message: expect.stringContaining('"z" that has `args`') },
    ]);
  });
});
