import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createHost, type Agent, type Host, type HostConfig, type SubAgent } from '@patchbay/host';
import type { CompiledView, Problem, ToolResult } from '@patchbay/protocols';
import { scriptedServer, type ScriptedServer, type ScriptedTool } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';

let root: string;
let problems: Problem[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'patchbay-sub-agents-'));
  problems = [];
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function open(config: HostConfig = {}, options = {}): Promise<Host> {
  const host = await createHost({
    cwd: root,
    home: false,
    env: {},
    watch: false,
    config,
    onProblem: (problem) => void problems.push(problem),
    ...options,
  });
  onTestFinished(() => host.close());
  return host;
}
async function serve(...tools: readonly ScriptedTool[]): Promise<ScriptedServer> {
  const server = await scriptedServer({ transport: 'http', tools });
  onTestFinished(() => server.close());
  return server;
}
const entry = (server: ScriptedServer) => ({ ...(server.config as { url: string }) });
async function skill(name: string): Promise<void> {
  await mkdir(join(root, '.agents/skills', name), { recursive: true });
  const text = `---\nname: ${name}\ndescription: Does ${name}.\n---\nDo ${name}.\n`;
  await writeFile(join(root, '.agents/skills', name, 'SKILL.md'), text);
}

const namesOf = ({ tools, skills }: CompiledView) => [
  ...tools.filter(({ id }) => id.capability !== 'skills').map(({ definition: { name } }) => name),
  ...skills.map(({ name }) => `skill ${name}`),
];
const seen = async (agent: Agent, options = {}) => namesOf(await agent.view(options).compile());
const call = async (agent: Agent, name: string, args = {}, options = {}): Promise<ToolResult> =>
  (await agent.view().compile()).callTool(name, args, options);
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: { code?: string }) => error.code,
  );
/** What is registered, without the usual folders. */
const registered = (host: Host) =>
  host.registry.inspect().flatMap(({ id }) => (id.startsWith('project-') ? [] : id));
/** Until a tool of a server is running. */
const runs = (server: ScriptedServer, tool: string, times = 1) =>
  expect.poll(() => server.executions(tool), { interval: 2, timeout: 5_000 }).toBe(times);
const cancelled = (server: ScriptedServer, times: number) =>
  expect.poll(() => server.cancellations, { interval: 2, timeout: 5_000 }).toBe(times);

describe('what a sub-agent sees', () => {
  it('is what its path says and what its parent sees, beside what is its own', async () => {
    const [all, code, reading, own] = await Promise.all([
      serve({ name: 'a' }),
      serve({ name: 'c' }),
      serve({ name: 'r' }),
      serve({ name: 'o' }),
    ]);
    await skill('write');
    await skill('read');
    const host = await open({
      mcp_servers: { all: entry(all) },
      agents: {
        coder: { mcp_servers: { code: entry(code) } },
        'coder/reader': {
          mcp_servers: { reading: entry(reading) },
          skills: { exclude: ['write'] },
        },
      },
    });
    await using session = await host.openSession('s');
    const coder = session.agent('coder');
    await using reader = await coder.spawn('reader', { servers: { own: entry(own) } });
    await using other = await coder.spawn('other');
    expect(reader.name).toBe('coder/reader#1');
    expect(await seen(reader)).toEqual(['all__a', 'code__c', 'own__o', 'reading__r', 'skill read']);
    expect(await seen(other)).toEqual(['all__a', 'code__c', 'skill read', 'skill write']);
    expect(await seen(coder)).toEqual(['all__a', 'code__c', 'skill read', 'skill write']);
    expect(await seen(session.agent('coder/reader'))).not.toContain('own__o');
  });

  it('is narrowed by whoever starts it, for all below it, and never widened', async () => {
    const [a, b] = await Promise.all([
      serve({ name: 'x' }, { name: 'y' }),
      serve({ name: 'x' }, { name: 'y' }),
    ]);
    for (const name of ['one', 'two', 'three']) await skill(name);
    const host = await open({
      mcp_servers: { a: entry(a), b: entry(b) },
      agents: { coder: { tools: { exclude: ['b__y'] }, skills: { exclude: ['three'] } } },
    });
    await using session = await host.openSession('s');
    const coder = session.agent('coder');
    await using sub = await coder.spawn('sub', {
      tools: { include: ['*__y', 'b__*', 'skills__*', 'nobody__has_this'] },
      skills: { include: ['one', 'three'] },
    });
    expect(await seen(sub)).toEqual(['a__y', 'b__x', 'skill one']);
    // It cannot give what it has not got, nor take back what was taken from it.
    await using below = await sub.spawn('below', {
      tools: [{ include: ['*'] }, { exclude: ['b__*'] }],
      skills: { include: ['*'] },
      servers: { mine: entry(b) },
    });
    expect(below.name).toBe('coder/sub#1/below#2');
    expect(await seen(below)).toEqual(['a__y', 'mine__y', 'skill one']);
    expect(await seen(below, { tools: { exclude: ['mine__*'] } })).toEqual(['a__y', 'skill one']);
    const { callTool } = await below.view().compile();
    expect(await codeOf(callTool('b__x', {}))).toBe('tool-unavailable');
    await expect(below.view().resources.read('skill://two/SKILL.md')).rejects.toMatchObject({
      code: 'not-found',
    });
    expect(await below.view().commands.resolve('/two')).toMatchObject({ code: 'command-unknown' });
    const { callTool: activate } = await sub.view().compile();
    const given = { name: 'two' };
    expect(await codeOf(activate('activate_skill', given))).toBe('tool-unavailable');
  });

  it('is its own where several of one name run side by side', async () => {
    const [first, second] = await Promise.all([serve({ name: 'f' }), serve({ name: 's' })]);
    const host = await open({
      agents: { 'coder/x': { tools: { exclude: ['*__hidden'] } } },
    });
    await using session = await host.openSession('s');
    const coder = session.agent('coder');
    const [one, two] = await Promise.all([
      coder.spawn('x', { servers: { own: entry(first) } }),
      coder.spawn('x', { servers: { own: entry(second) } }),
    ]);
    expect(new Set([one.name, two.name])).toEqual(new Set(['coder/x#1', 'coder/x#2']));
    expect([await seen(one), await seen(two)]).toEqual([['own__f'], ['own__s']]);
    await one.close();
    expect(await seen(two)).toEqual(['own__s']);
    await two.close();
    expect(registered(host)).toEqual(['skills']);
  });

  it('follows the configuration while it runs', async () => {
    const server = await serve({ name: 'x' }, { name: 'y' });
    const write = (exclude: readonly string[]) =>
      writeFile(
        join(root, 'patchbay.yaml'),
        JSON.stringify({
          mcp_servers: { a: entry(server) },
          agents: { 'coder/sub': { tools: { exclude } } },
        }),
      );
    await write([]);
    const host = await open(undefined, { config: 'patchbay.yaml' });
    await using session = await host.openSession('s');
    await using sub = await session.agent('coder').spawn('sub');
    expect(await seen(sub)).toEqual(['a__x', 'a__y']);
    await write(['a__y']);
    await host.reload();
    expect(await seen(sub)).toEqual(['a__x']);
  });
});

describe('the end of a sub-agent', () => {
  it('releases what is its own, and nothing of its parent', async () => {
    const [shared, own] = await Promise.all([
      serve({ name: 'work' }, { name: 'wait', onCall: 'never' }),
      serve({ name: 'wait', onCall: 'never' }),
    ]);
    await skill('one');
    const host = await open({ mcp_servers: { shared: entry(shared) } });
    await using session = await host.openSession('s');
    const parent = session.agent('coder');
    await call(parent, 'activate_skill', { name: 'one' });
    const before = session.snapshot();
    const waiting = codeOf(call(parent, 'shared__wait'));
    await runs(shared, 'wait');

    const sub = await parent.spawn('sub', { servers: { own: entry(own) } });
    await call(sub, 'activate_skill', { name: 'one' });
    expect(Object.keys(session.snapshot())).toEqual([
      'skills.active:coder',
      'skills.active:coder/sub#1',
    ]);
    const view = sub.view();
    const turn = view.beginTurn();
    const inFlight = [call(sub, 'own__wait'), call(sub, 'shared__wait')].map(codeOf);
    await Promise.all([runs(own, 'wait'), runs(shared, 'wait', 2)]);
    const heard = (async () => {
      for await (const _ of view.changes());
    })();
    expect(host.inspect().sessions).toMatchObject([{ subAgents: ['coder/sub#1'] }]);

    await sub.close();
    await sub.close();
    expect(await Promise.all(inFlight)).toEqual(['aborted', 'aborted']);
    await heard;
    await Promise.all([cancelled(own, 1), cancelled(shared, 1)]);
    expect(session.snapshot()).toEqual(before);
    expect(await codeOf(turn.prepare())).toBe('closed');
    expect(await codeOf(view.compile())).toBe('closed');
    expect(() => sub.view()).toThrow('has ended');
    expect(await codeOf(sub.spawn('x'))).toBe('closed');
    expect(registered(host)).toEqual(['shared', 'skills']);
    expect(host.inspect().sessions).toMatchObject([{ running: 1, subAgents: [] }]);

    // The parent's call goes on, over the same connection.
    expect(JSON.stringify(await call(parent, 'shared__work', { still: 'here' }))).toContain('here');
    expect([shared.connections, shared.cancellations]).toEqual([1, 1]);
    await session.close();
    await host.close();
    expect(await waiting).toBe('aborted');
  });

  it('comes with the end of its parent, of its session and of its host, and leaves nothing', async () => {
    const server = await serve({ name: 'wait', onCall: 'never' });
    const host = await open({}, { sessionIdleMs: 1 });
    const start = async (session: string, path: readonly string[]) => {
      const claim = await host.openSession(session);
      const subs: SubAgent[] = [];
      let agent: Agent = claim.agent('coder');
      for (const name of path) {
        const sub = await agent.spawn(name, { servers: { own: entry(server) } });
        subs.push(sub);
        agent = sub;
      }
      const ended = Promise.all(subs.map((sub) => codeOf(call(sub, 'own__wait'))));
      await runs(server, 'wait', server.executions('wait') + subs.length);
      return { claim, subs, ended };
    };
    const byParent = await start('1', ['a', 'b', 'c']);
    const order: string[] = [];
    void (async () => {
      for await (const { kind } of byParent.subs[0]!.view().changes()) order.push(kind);
    })();
    await byParent.subs[0]!.close();
    expect(await byParent.ended).toEqual(['aborted', 'aborted', 'aborted']);
    expect(() => byParent.subs[2]!.view()).toThrow('has ended');
    await byParent.subs[2]!.close();

    // The idle session ends as soon as nothing is going on in it.
    const bySession = await start('2', ['a', 'b']);
    const closing = host.registry.close({ session: '2' });
    expect(await bySession.ended).toEqual(['aborted', 'aborted']);
    await closing;

    const byHost = await start('3', ['a']);
    await host.close();
    expect(await byHost.ended).toEqual(['aborted']);
    expect(() => byHost.subs[0]!.view()).toThrow('has ended');
    expect(await codeOf(byHost.claim.agent('coder').spawn('late'))).toBe('closed');
    await byHost.subs[0]!.close();
    expect(problems).toEqual([]);
  });

  it('closes what it has in the reverse order of first use, the deepest agents first', async () => {
    const host = await open();
    await using session = await host.openSession('s');
    await using one = await session.agent('coder').spawn('one');
    await using two = await one.spawn('two');
    const closed: string[] = [];
    const register = (id: string, agent: string) =>
      host.registry.register(
        {
          id,
          tools: async () => [],
          [Symbol.asyncDispose]: async () => void closed.push(id),
        },
        { session: 's', agent },
      );
    register('second', one.name);
    register('first', one.name);
    register('deep', two.name);
    await host.registry.view({ session: 's', agent: one.name }).compile();
    await one.close();
    expect(closed).toEqual(['deep', 'second', 'first']);
  });

  it('is not the end of another one that has its name after a restart, nor does it leave it anything', async () => {
    await skill('one');
    const first = await open();
    const old = await first.openSession('s');
    const sub = await old.agent('coder').spawn('sub');
    await call(sub, 'activate_skill', { name: 'one' });
    const restore = old.snapshot();
    await first.close();
    const host = await open();
    await using session = await host.openSession('s', { restore });
    await using again = await session.agent('coder').spawn('sub');
    expect(again.name).toBe(sub.name);
    expect(session.snapshot()).toEqual({});
    await sub.close();
    expect(await seen(again)).toEqual(['skill one']);
  });
});

describe('an interrupt', () => {
  it('cancels the calls of a sub-agent and of those below it, and the parent goes on', async () => {
    const server = await serve({ name: 'wait', onCall: 'never' }, { name: 'work' });
    const host = await open({ mcp_servers: { s: entry(server) } });
    await using session = await host.openSession('s');
    const parent = session.agent('coder');
    const interrupt = new AbortController();
    const sub = await parent.spawn('sub', { signal: interrupt.signal });
    const below = await sub.spawn('below');
    const calls = [call(sub, 's__wait'), call(below, 's__wait')].map(codeOf);
    const others = codeOf(call(parent, 's__wait'));
    await runs(server, 'wait', 3);
    interrupt.abort(new Error('enough'));
    expect(await Promise.all(calls)).toEqual(['aborted', 'aborted']);
    await cancelled(server, 2);
    expect(host.inspect().sessions).toMatchObject([{ subAgents: [] }]);
    await call(parent, 's__work');
    await using next = await parent.spawn('sub');
    await call(next, 's__work');
    expect([server.connections, server.cancellations]).toEqual([1, 2]);
    await host.close();
    expect(await others).toBe('aborted');
  });

  it('that came before it began, or while it began, leaves nothing of it', async () => {
    const server = await serve({ name: 'x' });
    const host = await open();
    await using session = await host.openSession('s');
    const parent = session.agent('coder');
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(parent.spawn('sub', { signal })).rejects.toMatchObject({
      code: 'aborted',
      cause: { message: 'enough' },
    });
    const while_ = new AbortController();
    const starting = parent.spawn('sub', { signal: while_.signal, servers: { s: entry(server) } });
    while_.abort();
    expect(await codeOf(starting)).toBe('aborted');
    expect(registered(host)).toEqual(['skills']);
    expect(host.inspect().sessions).toMatchObject([{ subAgents: [] }]);
  });

  it('in the middle of an activation leaves no skill active that the model has not read', async () => {
    const host = await open();
    await using session = await host.openSession('s');
    const parent = session.agent('coder');
    let read: (() => void) | undefined;
    const opened = new Promise<void>((resolve) => (read = resolve));
    let answer: (() => void) | undefined;
    const entryOf = {
      name: 'slow',
      uri: 'skill://slow/SKILL.md',
      description: 'Slow.',
      origin: { kind: 'local', label: 'slow' },
    } as never;
    host.registry.register({
      id: 'slow-skills',
      listSkills: async () => [entryOf],
      skillExists: async () => true,
      openSkill: async () => {
        read?.();
        await new Promise<void>((resolve) => (answer = resolve));
        return { entry: entryOf, body: 'Slow.', digest: '1', files: [], readFile: async () => [] };
      },
    });
    const interrupt = new AbortController();
    const { callTool } = await parent.view().compile();
    const activating = codeOf(
      callTool('activate_skill', { name: 'slow' }, { signal: interrupt.signal }),
    );
    await opened;
    interrupt.abort();
    answer?.();
    expect(await activating).toBe('aborted');
    expect(session.snapshot()).toEqual({});
  });
});

describe('what cannot be a sub-agent', () => {
  it('is said, and starts nothing', async () => {
    const host = await open();
    await using session = await host.openSession('s');
    for (const name of ['', 'a/b', 'a#1', 7 as unknown as string])
      expect(await codeOf(session.agent('coder').spawn(name))).toBe('invalid-scope');
    expect(await codeOf(session.agent('').spawn('sub'))).toBe('invalid-scope');
    await using sub = await session.agent('coder').spawn('sub', {
      servers: { broken: { url: 'no address' }, fine: { command: 'x', env: { A: '${NOT_SET}' } } },
    });
    expect(await seen(sub)).toEqual([]);
    expect(problems.map(({ source }) => source).toSorted()).toEqual(['broken', 'fine']);
  });
});
