/**
 * The seven structural problems of RFC-0051, one test each. What is asserted is what the old design could not do: skills
 * beside the compiled view, `skill://` only local, commands without a skill, changes that were only logged, two
 * connection paths, one scope for everybody, edits that needed a restart.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import {
  changeSource,
  type Capability,
  type ChangeObservable,
  type ConnectionProvider,
  type ServerConfig,
  type SkillResource,
  type TurnStep,
} from '@patchbay/protocols';
import { CombinedCapability, ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { scriptedServer, type ScriptedServer } from '@patchbay/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';

let root: string;
let connections: ConnectionPool;
let registry: ExtensionRegistry;
let server: ScriptedServer;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'patchbay-problems-'));
  connections = new ConnectionPool();
  registry = new ExtensionRegistry();
  registry.register(new SkillManagerCapability());
  server = await scriptedServer({
    tools: [{ name: 'scan' }],
    resources: [
      { uri: 'skill://audit/SKILL.md', text: '---\nname: audit\n---\nAudit it.', name: 'audit' },
    ],
  });
});
afterEach(async () => {
  await registry.close();
  await connections.close();
  await server.close();
  await rm(root, { recursive: true, force: true });
});

async function write(folder: string, name: string, description: string): Promise<void> {
  await mkdir(join(root, folder, name), { recursive: true });
  const text = `---\nname: ${name}\ndescription: ${description}\n---\nHow to ${name}.\n`;
  await writeFile(join(root, folder, name, 'SKILL.md'), text);
}
const folderSkills = (id: string) => localSkills({ id, folder: join(root, id) });

/** Skills that a server has among its resources: the same protocol, with an injected client instead of a folder. */
function servedSkills(id: string, config: ServerConfig, pool: ConnectionProvider) {
  const changes = changeSource(id);
  let hearing: (() => void) | undefined;
  const read = async (uri: string) => {
    await using lease = await pool.acquire(config, { scope: {} });
    const [part] = await lease.value.readResource(uri);
    return (part as { readonly text?: string }).text ?? '';
  };
  const listSkills = async () => {
    await using lease = await pool.acquire(config, { scope: {} });
    hearing ??= lease.value.onNotification((method) => {
      if (method === 'notifications/resources/list_changed') changes.emit('skills_changed');
    });
    const { items } = await lease.value.listResources();
    return items
      .filter(({ uri }) => uri.startsWith('skill://'))
      .map(({ uri, name }) => ({ uri, name, description: `Does ${name}.`, origin: `mcp:${id}` }));
  };
  return {
    id,
    revision: changes.revision,
    changes: changes.subscribe,
    listSkills,
    skillExists: async (uri) => (await listSkills()).some((entry) => entry.uri === uri),
    openSkill: async (uri) => {
      const entry = (await listSkills()).find((one) => one.uri === uri);
      if (entry === undefined) return undefined;
      const body = (await read(uri)).split('---\n')[2]!;
      return { entry, body, digest: 'sha256:0', files: [], readFile: () => Promise.reject() };
    },
    [Symbol.asyncDispose]: async () => hearing?.(),
  } satisfies Capability & SkillResource & ChangeObservable;
}

const textOf = ({ instructions }: Pick<TurnStep, 'instructions'>) =>
  instructions.map(({ text }) => text).join('\n');

it('P1: skills are in the compiled view and among its resources, also those that come after the first compile', async () => {
  await write('mine', 'plan', 'Plans.');
  const view = registry.view({ session: 's' });
  expect((await view.compile()).skills).toEqual([]);
  registry.register(folderSkills('mine'), { session: 's' });
  const compiled = await view.compile();
  expect(compiled.skills.map(({ name }) => name)).toEqual(['plan']);
  expect(textOf(compiled)).toContain('Plans.');
  expect((await view.resources.list()).map(({ uri }) => uri)).toEqual(['skill://plan/SKILL.md']);
  expect(await view.resources.read('skill://plan/SKILL.md')).toMatchObject([
    { text: 'How to plan.' },
  ]);
});

it('P2: skill:// resolves to a skill that an MCP server serves, through the same registry', async () => {
  registry.register(servedSkills('remote', server.config, connections));
  const { resources } = registry.view();
  expect(await resources.exists('skill://audit')).toBe(true);
  expect(await resources.read('skill://audit/SKILL.md')).toMatchObject([{ text: 'Audit it.' }]);
});

it('P3: an MCP-served skill is a command and a skill: catalogue, activation, resource', async () => {
  registry.register(servedSkills('remote', server.config, connections));
  const view = registry.view({ session: 's' });
  expect(textOf(await view.compile())).toContain('Does audit.');
  expect(await view.commands.list()).toMatchObject([{ name: 'audit', kind: 'skill' }]);
  const command = await view.commands.resolve('/audit the shop');
  expect(JSON.stringify(command)).toContain('Audit it.');
  await using turn = view.beginTurn();
  expect((await turn.prepare()).active).toMatchObject([{ name: 'audit', source: 'remote' }]);
});

it('P4: a changed tool list, and a changed skill list, reach the next step of a running turn', async () => {
  const both = new CombinedCapability('shop', [
    new McpServerCapability({ id: 'tools', server: server.config, connections }),
    servedSkills('remote', server.config, connections),
  ]);
  registry.register(both);
  registry.register(folderSkills('mine'), { session: 's' });
  await write('mine', 'plan', 'Plans.');
  const view = registry.view({ session: 's' });
  await using turn = view.beginTurn();
  const changes = view.changes()[Symbol.asyncIterator]();
  const names = ({ tools }: TurnStep) => tools.map(({ definition }) => definition.name);
  expect(names(await turn.prepare())).not.toContain('tools__repair');
  server.setTools([{ name: 'scan' }, { name: 'repair' }]);
  for (let kind = ''; kind !== 'tools_changed'; kind = (await changes.next()).value.kind);
  expect(names(await turn.prepare())).toContain('tools__repair');
  await write('mine', 'ship', 'Ships.');
  expect(textOf(await turn.prepare())).toContain('Ships.');
  expect(await view.commands.list()).toMatchObject([
    { name: 'audit' },
    { name: 'plan' },
    { name: 'ship' },
  ]);
  await changes.return?.();
});

it('P5: a server that a pool, a session and a skill all name is one connection', async () => {
  const servers = (id: string, config: ServerConfig) =>
    new McpServerCapability({ id, server: config, connections });
  registry.register(servers('everybody', server.config));
  registry.register(servers('own', server.config), { session: 's' });
  await write('mine', 'check', 'Checks.');
  const { command, args = [] } = server.config as { command: string; args?: readonly string[] };
  await writeFile(
    join(root, 'mine/check/mcp.json'),
    JSON.stringify({ mcpServers: { scanner: { ...server.config, command, args } } }),
  );
  registry.register(folderSkills('mine'), { session: 's' });
  registry.register(new SkillManagerCapability({ servers }), { session: 's' });
  const view = registry.view({ session: 's' });
  const { callTool } = await view.compile();
  await callTool('activate_skill', { name: 'check' });
  const { tools, callTool: call } = await view.compile();
  const scanners = tools.flatMap(({ definition: { name } }) =>
    name.endsWith('scan') ? [name] : [],
  );
  expect(scanners).toEqual(['check-scanner__scan', 'everybody__scan', 'own__scan']);
  await Promise.all(scanners.map((name) => call(name, {})));
  expect(server.executions('scan')).toBe(3);
  expect(server.connections).toBe(1);
});

it('P6: tenants have different skills, and an agent of one is not that of another', async () => {
  await write('ann', 'plan', 'Plans for Ann.');
  await write('bob', 'plan', 'Plans for Bob.');
  await write('coder', 'code', 'Codes.');
  registry.register(folderSkills('ann'), { session: 'ann' });
  registry.register(folderSkills('bob'), { session: 'bob' });
  registry.register(folderSkills('coder'), { session: 'ann', agent: 'coder' });
  const skills = async (session: string, agent?: string) =>
    (
      await registry.view({ session, ...(agent === undefined ? {} : { agent }) }).compile()
    ).skills.map(({ description }) => description);
  expect(await skills('ann')).toEqual(['Plans for Ann.']);
  expect(await skills('bob')).toEqual(['Plans for Bob.']);
  expect(await skills('ann', 'coder')).toEqual(['Codes.', 'Plans for Ann.']);
  expect(await skills('bob', 'coder')).toEqual(['Plans for Bob.']);
  expect(await skills('eve')).toEqual([]);
  await expect(
    registry.view({ session: 'eve' }).resources.read('skill://plan'),
  ).rejects.toMatchObject({ code: 'not-found' });
});

it('P7: an edited, a new and a removed SKILL.md are seen at the next step, without a restart', async () => {
  await write('mine', 'plan', 'Plans.');
  registry.register(folderSkills('mine'));
  await using turn = registry.view().beginTurn();
  expect(textOf(await turn.prepare())).toContain('Plans.');
  await write('mine', 'plan', 'Plans ahead.');
  await write('mine', 'ship', 'Ships.');
  expect(textOf(await turn.prepare())).toMatch(/Plans ahead\.[\s\S]*Ships\./);
  await rm(join(root, 'mine/plan'), { recursive: true });
  expect(textOf(await turn.prepare())).not.toContain('Plans');
});
