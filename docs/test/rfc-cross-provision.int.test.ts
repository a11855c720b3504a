/**
 * The cross-provision scenarios of RFC-0051, and its lifecycle diagrams 3, 4 and 7: what one kind of source provides of
 * another. Each asserts the order that the diagram shows; where ours differs, the test says so.
 */
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { ServerFactory, TraceEvent, TurnStep } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { scriptedServer, skillsServer, type ScriptedServer } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let root: string;
let order: string[];
let pool: ConnectionPool;
let registry: ExtensionRegistry;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-scenarios-')));
  order = [];
  const onTrace = (event: TraceEvent) => {
    if (event.type === 'change') return;
    order.push(
      event.type === 'call'
        ? `call ${event.name} ${event.outcome}`
        : `${event.type} ${event.outcome}`,
    );
  };
  const silent = { onTrace, onProblem: () => undefined };
  pool = new ConnectionPool({ ...silent, backOff: { firstMs: 1, maxMs: 1 } });
  registry = new ExtensionRegistry(silent);
});
afterEach(async () => {
  await registry.close();
  await pool.close();
  await rm(root, { recursive: true, force: true });
});

const servers: ServerFactory = (id, server) =>
  new McpServerCapability({ id, server, connections: pool });
/** What happened since this was asked last. */
const since = () => order.splice(0);
const textOf = ({ instructions }: Pick<TurnStep, 'instructions'>) =>
  instructions.map(({ text }) => text).join('\n');
/** Notes what the server is asked, in the same order as everything else. */
const noted = (...methods: readonly string[]) =>
  Object.fromEntries(
    methods.map((method) => [
      method,
      (_: unknown, usual: () => Promise<object | undefined>) => {
        order.push(method);
        return usual();
      },
    ]),
  );

async function reviewSkill(server: ScriptedServer, more = ''): Promise<void> {
  const folder = join(root, 'code-review');
  await mkdir(folder);
  await writeFile(
    join(folder, 'SKILL.md'),
    `---\nname: code-review\ndescription: Reviews code.\n${more}---\nReview it line by line.\n`,
  );
  await writeFile(join(folder, 'mcp.json'), JSON.stringify({ github: server.config }));
}
const github = () =>
  scriptedServer({
    tools: [{ name: 'create_pr', annotations: { readOnlyHint: true } }],
    methods: noted('tools/list', 'tools/call'),
  });
const PR = 'code-review-github__create_pr';

describe.each([
  ['legacy', 'stdio'],
  ['modern', 'http'],
] as const)('of a server of the %s era, over %s', (era, transport) => {
  const provider = () =>
    skillsServer({
      era,
      transport,
      tools: [{ name: 'lint' }],
      prompts: [{ name: 'review', text: 'Review this.' }],
      skills: [{ name: 'ponytail', description: 'Ties hair.', body: 'Tie it.\n' }],
    });

  it('scenario 1: an MCP server provides tools, a skill and commands, each through its protocol', async () => {
    await using server = await provider();
    registry.register(
      new McpServerCapability({ id: 'skill-provider', server: server.config, connections: pool }),
    );
    registry.register(new SkillManagerCapability());
    const view = registry.view({ session: 's' });
    const { tools, skills, callTool } = await view.compile();
    expect(tools.map(({ definition }) => definition.name)).toContain('skill-provider__lint');
    expect(skills).toMatchObject([{ name: 'ponytail', source: 'skill-provider' }]);
    expect((await callTool('skill-provider__lint', {})).isError).not.toBe(true);
    expect(await view.resources.read('skill://ponytail/SKILL.md')).toMatchObject([
      { text: expect.stringContaining('Tie it.') },
    ]);
    const commands = await view.commands.list();
    expect(commands.map(({ name, kind }) => [name, kind])).toEqual(
      expect.arrayContaining([
        ['review', 'prompt'],
        ['ponytail', 'skill'],
      ]),
    );
    expect(JSON.stringify(await view.commands.resolve('/review'))).toContain('Review this.');
    expect(server.connections).toBe(1);
  });

  it('diagram 4: list, read, prompt, change, end; skills come by skills/list where the diagram has resources/list, and nothing is read before it is opened', async () => {
    await using server = await provider();
    const capability = new McpServerCapability({
      id: 'skill-provider',
      server: server.config,
      connections: pool,
    });
    const seen = (...methods: readonly string[]) =>
      server.requests.filter((method) => methods.includes(method));
    registry.register(capability);
    expect(server.requests).toEqual([]);
    registry.register(new SkillManagerCapability());
    const view = registry.view({ session: 's' });
    const { skills } = await view.compile();
    expect(skills.map(({ uri }) => uri)).toEqual(['skill://ponytail/SKILL.md']);
    expect(server.reads).toEqual([]);
    await view.resources.read('skill://ponytail/SKILL.md');
    expect(server.reads).toEqual(['skill://ponytail/SKILL.md']);
    await view.commands.list();
    await view.commands.resolve('/review');
    const steps = seen('skills/list', 'resources/read', 'prompts/get');
    expect(steps.filter((step, i) => step !== steps[i - 1])).toEqual([
      'skills/list',
      'resources/read',
      'prompts/get',
    ]);
    const changes = view.changes()[Symbol.asyncIterator]();
    const next = changes.next();
    server.setSkills([
      { name: 'ponytail', description: 'Ties hair.', body: 'Tie it.\n' },
      { name: 'braid', description: 'Braids hair.' },
    ]);
    expect((await next).value).toMatchObject({
      capability: 'skill-provider',
      kind: 'resources_changed',
    });
    await changes.return?.();
    expect((await view.compile()).skills.map(({ name }) => name)).toEqual(['braid', 'ponytail']);
    await registry.close();
    await pool.close();
    expect(pool.inspect()).toEqual([]);
    expect(server.connections).toBe(1);
  });
});

describe.each(['legacy', 'modern'])("on the official SDK's skills server, %s era", (era) => {
  it('scenario 1 and diagram 4: each step asks the server for what the diagram shows, in that order; skills come by skills/list, and a change is asked for at the next compile', async () => {
    const log = join(root, 'asked.log');
    await writeFile(log, '');
    const file = fileURLToPath(new URL('fixtures/skill-provider.mjs', import.meta.url));
    const server = { command: process.execPath, args: [file, era, log] };
    let seen = 0;
    /** What the server was asked since this was called last, without handshakes and subscriptions. */
    const asked = async () => {
      const lines = (await readFile(log, 'utf8')).trim().split('\n');
      return lines
        .slice(seen, (seen = lines.length))
        .filter((method) => /^(?:tools|skills|resources|prompts)\/(?!.*subscribe)/.test(method));
    };
    // Registration: no I/O.
    registry.register(new McpServerCapability({ id: 'provider', server, connections: pool }));
    registry.register(new SkillManagerCapability());
    expect(pool.inspect()).toEqual([]);
    // Discovery: one connection, lists only; nothing is read.
    const view = registry.view({ session: 's' });
    const { tools, skills, callTool } = await view.compile();
    expect(since()).toEqual(['connect ok', 'compile ok']);
    expect(tools.map(({ definition }) => definition.name)).toContain('provider__learn');
    expect(skills).toMatchObject([{ uri: 'skill://ponytail/SKILL.md', source: 'provider' }]);
    expect((await asked()).toSorted()).toEqual(['skills/list', 'tools/list']);
    // Content: the listed entry, then its SKILL.md.
    const said = await callTool('activate_skill', { name: 'ponytail' });
    expect(JSON.stringify(said)).toContain('Tie it.');
    expect(await asked()).toEqual(['resources/read']);
    // A command: the list, then the prompt.
    expect(JSON.stringify(await view.commands.resolve('/review'))).toContain('Review this.');
    expect(await asked()).toEqual(['prompts/list', 'prompts/get']);
    // Hot reload: told first, asked for when somebody compiles.
    const changes = view.changes()[Symbol.asyncIterator]();
    const next = changes.next();
    await view.compile();
    await asked();
    await callTool('provider__learn', {});
    expect((await next).value).toMatchObject({ capability: 'provider', kind: 'resources_changed' });
    expect(await asked()).toEqual(['tools/call']);
    const again = await view.compile();
    expect(again.skills.map(({ name }) => name)).toEqual(['braid', 'ponytail']);
    expect(await asked()).toEqual(['skills/list']);
    await changes.return?.();
    // Shutdown: the capability, then the process.
    const { pid } = pool.inspect()[0]!;
    await registry.close();
    expect(() => process.kill(pid!, 0)).not.toThrow();
    await pool.close();
    expect(() => process.kill(pid!, 0)).toThrow();
  });
});

it('scenario 2: a local skill is a skill and a command, and declares the server whose tools it brings', async () => {
  await using server = await github();
  await reviewSkill(server);
  registry.register(localSkills({ id: 'mine', folder: root }));
  registry.register(new SkillManagerCapability({ servers }));
  const view = registry.view({ session: 's' });
  const { skills, tools } = await view.compile();
  expect(skills.map(({ name }) => name)).toEqual(['code-review']);
  expect(tools.map(({ definition }) => definition.name)).not.toContain(PR);
  expect(server.connections).toBe(0);
  expect(await view.resources.read('skill://code-review')).toMatchObject([
    { text: 'Review it line by line.' },
  ]);
  // As a command it is put in force too, and so brings its server.
  expect(JSON.stringify(await view.commands.resolve('/code-review'))).toContain('Review it');
  const compiled = await view.compile();
  expect(compiled.tools.map(({ definition }) => definition.name)).toContain(PR);
  expect((await compiled.callTool(PR, { title: 'x' })).isError).not.toBe(true);
  expect(server.executions('create_pr')).toBe(1);
});

it('diagram 3: compile connects and lists, a call uses that connection, a crash costs tools only; SKILL.md is read before its server is known, not after, and a server that was lost keeps its tools for the next attempt', async () => {
  const server = await github();
  try {
    await reviewSkill(server, 'always_active: true\n');
    registry.register(localSkills({ id: 'mine', folder: root }));
    registry.register(new SkillManagerCapability({ servers }));
    const view = registry.view({ session: 's' });
    expect(since()).toEqual([]);
    const { callTool } = await view.compile();
    expect(since()).toEqual(['connect ok', 'tools/list', 'compile ok']);
    await callTool(PR, {});
    expect(since()).toEqual(['tools/call', `call ${PR} ok`]);
    server.die();
    await expect.poll(() => pool.inspect().map(({ state }) => state)).toEqual(['lost']);
    expect((await view.compile()).tools.map(({ definition }) => definition.name)).toContain(PR);
    await using turn = view.beginTurn();
    expect(textOf(await turn.prepare())).toContain('Review it line by line.');
    await registry.close();
    await pool.close();
    expect(pool.inspect()).toEqual([]);
  } finally {
    await server.close();
  }
});

it('diagram 7: a sub-agent compiles, calls, and after a crash calls again over a new connection; where the server stays away it goes on with the skill alone', async () => {
  const server = await github();
  try {
    await reviewSkill(server, 'always_active: true\n');
    registry.register(localSkills({ id: 'mine', folder: root }), { session: 's', agent: 'lead' });
    registry.register(new SkillManagerCapability({ servers }));
    const view = registry.view({ session: 's', agent: 'lead/reviewer' });
    const { callTool } = await view.compile();
    await callTool(PR, {});
    expect(since()).toEqual([
      'connect ok',
      'tools/list',
      'compile ok',
      'tools/call',
      `call ${PR} ok`,
    ]);
    server.die();
    await expect.poll(() => pool.inspect().map(({ state }) => state)).toEqual(['lost']);
    await callTool(PR, {});
    const again = since();
    expect(again.filter((step) => step === 'connect ok')).toHaveLength(1);
    expect(again.indexOf('connect ok')).toBeLessThan(again.indexOf('tools/call'));
    expect(again.at(-1)).toBe(`call ${PR} ok`);
    // Permanently down.
    await server.close();
    await expect.poll(() => pool.inspect().map(({ state }) => state)).not.toEqual(['ready']);
    const failed = await callTool(PR, {}).then(
      (result) => (result.isError === true ? 'tool-error' : 'ok'),
      (error: { readonly code: string }) => error.code,
    );
    expect(failed).not.toBe('ok');
    expect(since().filter((step) => step === 'tools/call')).toEqual([]);
    const compiled = await view.compile();
    expect(compiled.tools.map(({ definition }) => definition.name)).not.toContain(PR);
    expect(compiled.problems).toMatchObject([
      { source: 'mine', message: expect.stringContaining('the skill itself works') },
    ]);
    await using turn = view.beginTurn();
    const said = textOf(await turn.prepare());
    expect(said).toContain('Review it line by line.');
    expect(said).toMatch(/without the tools of its MCP servers.*: github\./);
  } finally {
    await server.close();
  }
});
