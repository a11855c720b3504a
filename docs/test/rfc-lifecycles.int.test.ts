/**
 * The lifecycles of RFC-0051, one test for each sequence diagram (3, 4 and 7 are with the cross-provision scenarios). Each
 * asserts the order that its diagram shows; where ours is another, the test says so.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ConnectionPool } from '@patchbay/connection-pool';
import { createHost, type Host, type Logger } from '@patchbay/host';
import { McpServerCapability } from '@patchbay/mcp';
import type { ChangeEvent, ExtensionView, TraceEvent, TurnStep } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { scriptedServer, type ScriptedServer, type ScriptedServerOptions } from '@patchbay/testkit';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';

let root: string;
/** What happened, in order: `connect ok`, `call pay ok`, `change github registered`. */
let happened: string[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'patchbay-lifecycles-'));
  happened = [];
});
afterEach(() => rm(root, { recursive: true, force: true }));

const onTrace = (event: TraceEvent): void => {
  if (event.type === 'connect') happened.push(`connect ${event.outcome}`);
  else if (event.type === 'call') happened.push(`call ${event.name} ${event.outcome}`);
  else if (event.type === 'compile') happened.push(`compile ${event.outcome}`);
  else happened.push(`change ${event.capability} ${event.kind}`);
};
const silent = () => undefined;
const logger: Logger = {
  debug: (_message, event) => onTrace(event as TraceEvent),
  info: silent,
  warn: silent,
  error: silent,
};
/** What happened since it was last asked for. */
const sinceThen = () => happened.splice(0);

async function serve(options: ScriptedServerOptions): Promise<ScriptedServer> {
  const server = await scriptedServer(options);
  onTestFinished(() => server.close());
  return server;
}
/** What a server was asked since it was last asked for, without handshakes and pings. */
function asked(server: ScriptedServer): readonly string[] {
  const seen = heard.get(server) ?? 0;
  heard.set(server, server.requests.length);
  return server.requests.slice(seen).filter((method) => method.startsWith('tools/'));
}
const heard = new WeakMap<ScriptedServer, number>();

async function open(server: ScriptedServer): Promise<Host> {
  const host = await createHost({
    cwd: root,
    home: false,
    env: {},
    watch: false,
    config: { mcp_servers: { github: { ...server.config } as never } },
    pool: { backOff: { firstMs: 1, maxMs: 60_000 } },
    logger,
  });
  onTestFinished(() => host.close());
  sinceThen();
  return host;
}
async function writeSkill(body: string, description = 'Lazy.'): Promise<void> {
  const folder = join(root, '.agents/skills/ponytail');
  await mkdir(folder, { recursive: true });
  const text = `---\nname: ponytail\ndescription: ${description}\n---\n${body}\n`;
  await writeFile(join(folder, 'SKILL.md'), text);
}
const namesOf = ({ tools }: Pick<TurnStep, 'tools'>) =>
  tools.map(({ definition: { name } }) => name).filter((name) => name.includes('__'));
const textOf = ({ instructions }: Pick<TurnStep, 'instructions'>) =>
  instructions.map(({ text }) => text).join('\n');
/** Listens at once; the promise is the next event of a kind. */
function next(view: ExtensionView, kind: string): () => Promise<ChangeEvent> {
  const events = view.changes()[Symbol.asyncIterator]();
  let first: Promise<IteratorResult<ChangeEvent>> | undefined = events.next();
  return async () => {
    for (;;) {
      const { value, done } = await (first ?? events.next());
      first = undefined;
      if (done === true) throw new Error(`The stream ended without ${kind}.`);
      if (value.kind === kind) return value;
    }
  };
}
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
/** Until a server runs a tool. */
const runs = (server: ScriptedServer, tool: string, times = 1) =>
  expect.poll(() => server.executions(tool), { interval: 2, timeout: 5_000 }).toBe(times);

it('RFC-0051 diagram 1: MCP Server Lifecycle (stdio)', async () => {
  const server = await serve({ tools: [{ name: 'create_issue' }, { name: 'list_repos' }] });
  const connections = new ConnectionPool({ onTrace });
  const registry = new ExtensionRegistry({ onTrace });
  // Creation: no I/O.
  registry.register(new McpServerCapability({ id: 'github', server: server.config, connections }));
  expect(connections.inspect()).toEqual([]);
  // Compilation connects, then asks for the tools.
  const view = registry.view({ session: 's', agent: 'coder' });
  expect(namesOf(await view.compile())).toEqual(['github__create_issue', 'github__list_repos']);
  expect(sinceThen()).toEqual(['change github registered', 'connect ok', 'compile ok']);
  expect(asked(server)).toEqual(['tools/list']);
  const { pid } = connections.inspect()[0]!;
  // Both calls go over that connection.
  const { callTool } = await view.compile();
  await callTool('github__create_issue', {});
  await callTool('github__list_repos', {});
  expect(sinceThen()).toEqual(['call github__create_issue ok', 'call github__list_repos ok']);
  expect(asked(server)).toEqual(['tools/call', 'tools/call']);
  expect(server.connections).toBe(1);
  // Hot reload: told first, asked for when somebody compiles.
  const changed = next(view, 'tools_changed');
  server.setTools([{ name: 'create_issue' }, { name: 'close_issue' }]);
  expect(await changed()).toMatchObject({ capability: 'github' });
  expect(asked(server)).toEqual([]);
  expect(namesOf(await view.compile())).toEqual(['github__close_issue', 'github__create_issue']);
  expect(asked(server)).toEqual(['tools/list']);
  expect(sinceThen()).toEqual(['change github tools_changed', 'compile ok']);
  // Shutdown. Ours differs: a capability gives its lease back, the process ends with the pool, after all capabilities.
  await registry.close();
  expect(isAlive(pid!)).toBe(true);
  await connections.close();
  expect(isAlive(pid!)).toBe(false);
  expect(sinceThen()).toEqual(['change github unregistered']);
});

it('RFC-0051 diagram 2: Local Skill Lifecycle', async () => {
  await writeSkill('Do less.');
  await using registry = new ExtensionRegistry({ onTrace });
  // Discovery. Ours differs: registering reads nothing, the folder is looked at when somebody compiles.
  registry.register(localSkills({ id: 'mine', folder: join(root, '.agents/skills') }));
  registry.register(new SkillManagerCapability());
  const view = registry.view({ session: 's', agent: 'coder' });
  const compiled = await view.compile();
  expect(sinceThen()).toEqual(['change mine registered', 'change skills registered', 'compile ok']);
  // Instructions. Ours differs: metadata is always there, the text enters when the skill is activated.
  expect(textOf(compiled)).toContain('Lazy.');
  expect(textOf(compiled)).not.toContain('Do less.');
  const said = await compiled.callTool('activate_skill', { name: 'ponytail' });
  expect(JSON.stringify(said)).toContain('Do less.');
  // A command: the text, and what the user typed behind it.
  const command = await view.commands.resolve('/ponytail on the sofa');
  expect(JSON.stringify(command)).toMatch(/Do less\..*on the sofa/u);
  expect(sinceThen()).toEqual(['call activate_skill ok']);
  // Hot reload: the watcher tells, the next compile reads again.
  const changed = next(view, 'skills_changed');
  await view.compile();
  await writeSkill('Do nothing.', 'Lazier.');
  expect(await changed()).toMatchObject({ capability: 'mine' });
  const again = await view.compile();
  expect(again.revision).toBeGreaterThan(compiled.revision);
  expect(textOf(again)).toContain('Lazier.');
  const read = await view.resources.read('skill://ponytail/SKILL.md');
  expect(read).toMatchObject([{ text: 'Do nothing.' }]);
  // Shutdown: at once, and with it the watcher.
  const closing = registry.close();
  expect(registry.inspect()).toEqual([]);
  await closing;
});

it('RFC-0051 diagram 5: Subagent Spawning with MCP Tools', async () => {
  const server = await serve({ tools: [{ name: 'edit_file' }] });
  const own = await serve({ transport: 'http', tools: [{ name: 'look' }] });
  const host = await open(server);
  await using session = await host.openSession('s');
  const parent = session.agent('main');
  // Spawn: what is its own is registered at its scope; it inherits the rest. Nothing connects.
  const sub = await parent.spawn('coder', { servers: { own: { ...own.config } as never } });
  expect(sinceThen()).toEqual(['change own registered']);
  expect(host.registry.inspect().find(({ id }) => id === 'own')?.scope).toBe(
    'session="s" agent="main/coder#1"',
  );
  // Compilation connects.
  const view = sub.view();
  const { callTool, ...compiled } = await view.compile();
  expect(namesOf(compiled)).toEqual(['github__edit_file', 'own__look']);
  expect(sinceThen()).toEqual(['connect ok', 'connect ok', 'compile ok']);
  expect(asked(server)).toEqual(['tools/list']);
  // The call goes over that connection.
  await callTool('github__edit_file', {});
  expect(sinceThen()).toEqual(['call github__edit_file ok']);
  expect(asked(server)).toEqual(['tools/call']);
  // Completion: only its own is unregistered.
  await sub.close();
  expect(sinceThen()).toEqual(['change own unregistered']);
  expect(host.registry.inspect().map(({ id }) => id)).toContain('github');
  // The connection persists; the parent does not even ask for the tools again.
  const parents = await parent.view().compile();
  await parents.callTool('github__edit_file', {});
  expect(namesOf(parents)).toEqual(['github__edit_file']);
  expect(server.connections).toBe(1);
  expect(asked(server)).toEqual(['tools/call']);
});

it('RFC-0051 diagram 6: MCP Disconnection During Subagent Run', async () => {
  let isDown = false;
  const server = await serve({
    tools: [
      { name: 'create_issue', onCall: 'die-once', annotations: { idempotentHint: true } },
      { name: 'pay', onCall: 'die-after-execution' },
    ],
    methods: {
      initialize: (_params, usual) => {
        if (isDown) throw Object.assign(new Error('down'), { code: -32_000 });
        return usual();
      },
    },
  });
  await writeSkill('Do less.');
  const host = await open(server);
  await using session = await host.openSession('s');
  const parent = session.agent('main');
  await using sub = await parent.spawn('coder');
  const view = sub.view();
  const first = await view.compile();
  sinceThen();
  // The server crashes in the middle of the call: a new process, the call again, its result.
  const result = await first.callTool('github__create_issue', { title: 'x' });
  expect(JSON.stringify(result)).toContain('x');
  expect(server.executions('create_issue')).toBe(2);
  expect(sinceThen()).toEqual(['connect ok', 'call github__create_issue ok']);
  // Ours differs: what may not run twice is not sent again. The model is told that the outcome is unknown.
  await expect(first.callTool('github__pay', {})).rejects.toMatchObject({
    code: 'outcome-unknown',
  });
  expect(server.executions('pay')).toBe(1);
  sinceThen();
  // All retries exhausted: three attempts, an error that the model reads, the change, no tools at the next compile.
  isDown = true;
  const changed = next(view, 'tools_changed');
  await view.compile();
  sinceThen();
  const failed = await first.callTool('github__create_issue', {}).catch((error: unknown) => error);
  expect(failed).toMatchObject({
    code: 'connect-failed',
    message: expect.stringContaining('"github"'),
  });
  expect(await changed()).toMatchObject({ capability: 'github' });
  expect(sinceThen().filter((event) => event.startsWith('connect '))).toHaveLength(3);
  const without = await view.compile();
  expect(namesOf(without)).toEqual([]);
  expect(without.problems).toMatchObject([{ source: 'github', retryAt: expect.any(String) }]);
  expect(host.registry.inspect().find(({ id }) => id === 'github')).toMatchObject({
    status: { state: 'degraded' },
  });
  // It goes on without the tool: skills and their instructions stay, and the model is told what is missing.
  expect(textOf(without)).toMatch(/Lazy\.[^]*Not available at the moment[^]*github/u);
  const skill = await without.callTool('activate_skill', { name: 'ponytail' });
  expect(JSON.stringify(skill)).toContain('Do less.');
  await sub.close();
  expect(namesOf(await parent.view().compile())).toEqual([]);
});

it('RFC-0051 diagram 8: Parent Interruption While Subagent Running', async () => {
  const server = await serve({ tools: [{ name: 'edit_file', onCall: 'never' }, { name: 'look' }] });
  await writeSkill('Do less.');
  const host = await open(server);
  await using session = await host.openSession('s');
  const parent = session.agent('main');
  const run = new AbortController();
  const sub = await parent.spawn('coder', { signal: run.signal });
  const view = sub.view();
  const turn = view.beginTurn({ signal: run.signal });
  await turn.prepare();
  await turn.callTool('activate_skill', { name: 'ponytail' });
  const calling = turn.callTool('github__edit_file', {});
  const ended = calling.catch((error: unknown) => error);
  await runs(server, 'edit_file');
  sinceThen();
  // The user interrupts: no result, a cancellation at the server, and then the sub-agent has ended.
  run.abort(new Error('stop'));
  expect(await ended).toMatchObject({ code: 'aborted' });
  await expect.poll(() => server.cancellations, { interval: 2, timeout: 5_000 }).toBe(1);
  expect(sinceThen()).toEqual(['call github__edit_file aborted']);
  expect(host.inspect().sessions).toMatchObject([{ running: 0, subAgents: [] }]);
  // No partial state: what it had activated is gone with it.
  expect(session.snapshot()).toEqual({});
  await expect(turn.prepare()).rejects.toMatchObject({ code: 'closed' });
  // The connection stays, and the parent goes on over it.
  expect(host.inspect().connections).toMatchObject([{ state: 'ready' }]);
  const { callTool } = await parent.view().compile();
  await callTool('github__look', {});
  expect(server.connections).toBe(1);
});

it('RFC-0051 diagram 9: Concurrent Subagents Sharing MCP Connection', async () => {
  let both: (() => void) | undefined;
  const together = new Promise<void>((resolve) => (both = resolve));
  const server = await serve({
    tools: [
      {
        name: 'read_file',
        // Nobody is answered before both have asked: one connection carries them at the same time.
        onCall: async ({ path }, { execution }) => {
          if (execution === 2) both?.();
          await together;
          return `content of ${String(path)}`;
        },
      },
    ],
  });
  const host = await open(server);
  await using session = await host.openSession('s');
  const parent = session.agent('main');
  const subs = await Promise.all([parent.spawn('analyzer'), parent.spawn('reviewer')]);
  const views = subs.map((sub) => sub.view());
  const compiled = await Promise.all(views.map((view) => view.compile()));
  // Ours differs: the second one shares the first one's list too, not only its connection.
  expect(sinceThen()).toEqual(['connect ok', 'compile ok', 'compile ok']);
  expect(asked(server)).toEqual(['tools/list']);
  expect(compiled[0]!.tools.at(-1)).toBe(compiled[1]!.tools.at(-1));
  const results = await Promise.all(
    compiled.map(({ callTool }, i) => callTool('github__read_file', { path: `${i}.md` })),
  );
  expect(results.map(({ content }) => content)).toMatchObject([
    [{ text: 'content of 0.md' }],
    [{ text: 'content of 1.md' }],
  ]);
  expect(asked(server)).toEqual(['tools/call', 'tools/call']);
  expect(server.connections).toBe(1);
  await Promise.all(subs.map((sub) => sub.close()));
  expect(host.inspect().connections).toMatchObject([{ state: 'ready' }]);
});
