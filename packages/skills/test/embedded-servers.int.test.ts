import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import {
  changeSource,
  defineTool,
  type Capability,
  type ChangeObservable,
  type ExtensionView,
  type ServerFactory,
  type Tool,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
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
    await bench.write('a/mcp.json', '{ "x": { "command": "y" }, // comment\n}');
    const view = plug();
    expect((await view.compile()).problems.map(({ code }) => code)).toEqual(['invalid-config']);
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
