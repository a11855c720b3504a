import { cp, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { createHost, formatProblems, type Host, type HostOptions } from '@patchbay/host';
import { defineTool, type Problem } from '@patchbay/protocols';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let root: string;
let problems: Problem[];

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-host-')));
  problems = [];
});
afterEach(() => rm(root, { recursive: true, force: true }));

const fixture = (key: string) => fileURLToPath(new URL(`fixtures/${key}`, import.meta.url));
const open = (options: HostOptions = {}) =>
  createHost({
    cwd: root,
    home: false,
    env: {},
    trust: () => true,
    onProblem: (problem) => void problems.push(problem),
    ...options,
  });

async function write(path: string, content: unknown): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(
    join(root, path),
    typeof content === 'string' ? content : JSON.stringify(content, null, 2),
  );
}
const skill = (path: string, name: string) =>
  write(
    `${path}/${name}/SKILL.md`,
    `---\nname: ${name}\ndescription: Does ${name}.\n---\nDo ${name}.\n`,
  );
/** The server of a public report: says `who` it is. */
const who = (name: string) => ({
  command: process.execPath,
  args: [join(fixture('roo-code-2797'), 'server.mjs'), name],
});
const textOf = (result: { readonly content: readonly unknown[] }) =>
  (result.content[0] as { text: string }).text;

describe('configuration files', () => {
  it('are read with comments and trailing commas, in the shapes of both worlds', async () => {
    await write(
      '.mcp.json',
      `{ // ours\n  "mcpServers": { "a": ${JSON.stringify(who('a'))}, },\n}`,
    );
    await write(
      '.vscode/mcp.json',
      `{ "servers": { "b": ${JSON.stringify({ type: 'stdio', ...who('b') })} }, "inputs": [] }`,
    );
    await write(
      'patchbay.yaml',
      `mcp_servers:\n  c:\n    command: ${process.execPath}\n    args: [${JSON.stringify(who('c').args[0])}, c]\n`,
    );
    await using host = await open();
    const { tools, callTool } = await host.registry.view().compile();
    expect(tools.map(({ definition }) => definition.name)).toEqual(['a__who', 'b__who', 'c__who']);
    expect(textOf(await callTool('b__who', {}))).toBe('b');
    expect(problems).toEqual([]);
    expect(host.inspect().files.map((file) => file.slice(root.length + 1))).toEqual([
      'patchbay.yaml',
      '.mcp.json',
      '.vscode/mcp.json',
    ]);
  });

  it('may be given in code, in the same shape', async () => {
    await using host = await open({ config: { mcp_servers: { a: who('a') } } });
    expect((await host.registry.view().compile()).tools).toHaveLength(1);
  });

  it('say where they are wrong, and disable only that entry', async () => {
    await write('.mcp.json', {
      mcpServers: {
        good: who('good'),
        both: { command: 'x', url: 'http://127.0.0.1' },
        neither: {},
        secret: { command: 'x', env: { TOKEN: '${API_TOKEN}' } },
        number: { command: 7 },
      },
    });
    await write('patchbay.yaml', 'mcp_servers: [\n');
    await using host = await open();
    const { tools } = await host.registry.view().compile();
    expect(tools.map(({ id }) => id.capability)).toEqual(['good']);
    const said = Object.fromEntries(problems.map(({ source, message }) => [source, message]));
    expect(said['both']).toMatch(/^\.mcp\.json:10:\d+: the server "both" is left out: it has both/);
    expect(said['secret']).toMatch(/env\.TOKEN needs API_TOKEN, which is not set/);
    expect(said['number']).toMatch(/^\.mcp\.json:22:\d+: .*command/);
    expect(said['neither']).toContain('needs a `command`');
    expect(said['patchbay.yaml']).toMatch(/^patchbay\.yaml:\d+:\d+ cannot be read/);
    expect(host.inspect().servers.map(({ id, state }) => [id, state])).toEqual([
      ['good', 'on'],
      ['both', 'broken'],
      ['neither', 'broken'],
      ['secret', 'broken'],
      ['number', 'broken'],
    ]);
  });

  it('a file that is named has to be there', async () => {
    await expect(open({ config: 'none.yaml' })).rejects.toMatchObject({ code: 'not-found' });
  });

  it('the first of two servers of one name counts', async () => {
    await write('.mcp.json', { mcpServers: { a: who('first') } });
    await write('.vscode/mcp.json', { servers: { a: who('second') } });
    await using host = await open();
    const { callTool } = await host.registry.view().compile();
    expect(textOf(await callTool('a__who', {}))).toBe('first');
    expect(problems).toMatchObject([{ source: 'a', code: 'duplicate-id' }]);
  });

  it('a server of a name that is taken, or of none, is a problem', async () => {
    await skill('.agents/skills', 'a');
    await write('.mcp.json', { mcpServers: { skills: who('x'), '': who('y'), fine: who('z') } });
    await using host = await open();
    const { tools, skills } = await host.registry.view().compile();
    expect(tools.map(({ definition: { name } }) => name)).toContain('fine__who');
    expect(skills).toHaveLength(1);
    expect(problems.map(({ code }) => code)).toEqual(['duplicate-id', 'invalid-id']);
  });

  it('roo-code-2797: servers that are off are not started, whatever says so', async () => {
    await cp(fixture('roo-code-2797'), root, { recursive: true });
    await cp(join(root, 'disabled.mcp.json'), join(root, '.mcp.json'));
    await using host = await open();
    const { tools } = await host.registry.view().compile();
    expect(tools.map(({ id }) => id.capability)).toEqual(['e']);
    expect(host.inspect().servers.map(({ id, state }) => [id, state])).toEqual([
      ['a', 'disabled'],
      ['b', 'disabled'],
      ['c', 'broken'],
      ['d', 'disabled'],
      ['e', 'on'],
    ]);
    expect(host.inspect().connections).toHaveLength(1);
  });

  it('claude-code-17565: relative commands and folders are meant from the file, not from the program', async () => {
    await cp(fixture('claude-code-17565'), root, { recursive: true });
    await using host = await open({ cwd: join(root, 'proj') });
    const view = await host.registry.view().compile();
    const started = new Set(view.tools.map(({ id }) => id.capability));
    expect(started.has('rel-args') && started.has('cwd-rel') && started.has('spaces')).toBe(true);
    expect(view.problems.find(({ source }) => source === 'no-dir')?.message).toContain(
      'working directory',
    );
  });
});

describe('an edited configuration', () => {
  const tools = async (host: Host) =>
    (await host.registry.view().compile()).tools.map(({ definition }) => definition.name);
  const pids = (host: Host) =>
    Object.fromEntries(host.inspect().connections.map(({ server, pid }) => [server, pid] as const));
  const alive = (pid: number) => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  const labelled = (name: string, more: object = {}) => ({ ...who(name), ...more });

  it('roo-code-2797: a server that is switched off ends, one that is switched on starts, the others stay', async () => {
    const file = (a: object, e: object) =>
      write('.mcp.json', {
        mcpServers: { a: labelled('a', a), e: labelled('e', e), kept: labelled('kept') },
      });
    await file({ disabled: true }, {});
    await using host = await open();
    await using session = await host.openSession('s');
    const view = session.view();
    expect((await view.compile()).tools.map(({ id }) => id.capability)).toEqual(['e', 'kept']);
    const before = host.inspect().connections.map(({ pid }) => pid!);
    await file({}, { disabled: true });
    for await (const { capability, kind } of view.changes())
      if (capability === 'a' && kind === 'registered') break;
    expect((await view.compile()).tools.map(({ id }) => id.capability)).toEqual(['a', 'kept']);
    await expect.poll(() => before.filter(alive)).toHaveLength(1);
    const after = host.inspect().connections.map(({ pid }) => pid!);
    expect(after.filter((pid) => before.includes(pid))).toHaveLength(1);
    expect(host.inspect().servers.map(({ id, state }) => [id, state])).toEqual([
      ['a', 'on'],
      ['e', 'disabled'],
      ['kept', 'on'],
    ]);
  });

  it('is applied when files appear, change and go', async () => {
    await using host = await open({ watch: false });
    expect(await tools(host)).toEqual([]);
    await write('.vscode/mcp.json', { servers: { b: who('b') } });
    await write('patchbay.yaml', 'skills: { folders: [./team], defaults: false }\n');
    await skill('team', 'one');
    await host.reload();
    expect(await tools(host)).toContain('b__who');
    expect((await host.registry.view().compile()).skills.map(({ name }) => name)).toEqual(['one']);
    const before = pids(host);
    await host.reload();
    expect(pids(host)).toEqual(before);
    await rm(join(root, '.vscode'), { recursive: true });
    await rm(join(root, 'patchbay.yaml'));
    await host.reload();
    expect(await tools(host)).toEqual([]);
    await expect.poll(() => host.inspect().connections).toEqual([]);
  });

  it('says what is wrong with it, once, and goes on with the rest', async () => {
    await write('.mcp.json', { mcpServers: { a: who('a') } });
    await using host = await open({ watch: false });
    await write('.mcp.json', '{ "mcpServers": {');
    await Promise.all([host.reload(), host.reload()]);
    expect(problems).toMatchObject([{ source: '.mcp.json', code: 'invalid-config' }]);
    expect(await tools(host)).toEqual(['a__who']);
    await write('.mcp.json', { mcpServers: { a: { ...who('a'), args: 7 }, b: who('b') } });
    await host.reload();
    expect(await tools(host)).toEqual(['b__who']);
    expect(host.inspect().problems).toMatchObject([{ source: 'a' }]);
  });

  it('two servers of one configuration keep their one connection when one of them goes', async () => {
    await write('.mcp.json', { mcpServers: { a: who('same'), b: who('same') } });
    await using host = await open({ watch: false });
    expect(await tools(host)).toEqual(['a__who', 'b__who']);
    expect(host.inspect().connections).toHaveLength(1);
    await write('.mcp.json', { mcpServers: { b: who('same') } });
    await host.reload();
    const { callTool } = await host.registry.view().compile();
    expect(textOf(await callTool('b__who', {}))).toBe('same');
    await callTool('b__who', {});
    expect(host.inspect().connections).toHaveLength(1);
  });
});

describe('folders', () => {
  it('of commands mean what their tools mean, and do what the program lets them', async () => {
    await write('.opencode/command/all.md', '$1 of $2');
    await write('.cursor/commands/plain.md', 'About $1');
    await write('extra/.claude/commands/zero.md', '$0, $1, see @notes.md');
    await write('home/.codex/prompts/fix.md', 'Fix $FILE');
    await write('patchbay.yaml', 'commands:\n  folders: [extra/.claude/commands]\n');
    await using host = await open({
      home: join(root, 'home'),
      commands: { readFile: async ({ path }) => `<${path}>` },
    });
    const { commands } = host.registry.view();
    const lines = ['/all a b c', '/plain a', '/zero a b', '/fix FILE=a.ts'];
    const resolved = await Promise.all(lines.map((line) => commands.resolve(line)));
    expect(resolved.map((one) => one?.ok === true && textOf(one))).toEqual([
      'a of b c',
      'About $1\n\na',
      'a, b, see <notes.md>',
      'Fix a.ts',
    ]);
    expect(problems).toEqual([]);
  });

  it('of skills and commands are found up to the root of the repository, and of the user', async () => {
    await mkdir(join(root, '.git'));
    await skill('.agents/skills', 'top');
    await skill('app/.claude/skills', 'near');
    await skill('home/.claude/skills', 'mine');
    await write(
      'home/.claude/skills/near/SKILL.md',
      '---\nname: near\ndescription: Another one.\n---\nAnother body.\n',
    );
    await write('app/.claude/commands/review.md', 'Review $1.');
    await write('home/.codex/prompts/plan.md', 'Plan $1.');
    await using host = await open({ cwd: join(root, 'app'), home: join(root, 'home') });
    await using session = await host.openSession('s');
    const view = session.view();
    const { instructions } = await view.compile();
    expect(
      [...instructions[0]!.text.matchAll(/<name>(.*?)<\/name>/g)].map(([, name]) => name),
    ).toEqual(['mine', 'near', 'top', 'user-skills:near']);
    expect((await view.commands.list()).map(({ name, kind }) => `${kind} ${name}`)).toEqual([
      'skill mine',
      'skill near',
      'file plan',
      'file review',
      'skill top',
      'skill user-skills:near',
    ]);
    expect(await view.commands.resolve('/review this')).toMatchObject({
      content: [{ text: 'Review this.' }],
    });
  });

  it('a config with a broken server, a broken skill and a broken command runs, and names all three', async () => {
    await write('.mcp.json', {
      mcpServers: { good: who('good'), gone: { command: 'no-such-command-x' } },
    });
    await skill('.agents/skills', 'fine');
    await write('.agents/skills/broken/SKILL.md', 'a\0b');
    await write('.claude/commands/fine.md', 'Fine.');
    await write('.claude/commands/broken.md', 'a\0b');
    await using host = await open();
    await using session = await host.openSession('s');
    const view = session.agent('coder').view();
    const compiled = await view.compile();
    expect(compiled.tools.map(({ definition }) => definition.name)).toContain('good__who');
    expect((await view.commands.list()).map(({ name }) => name)).toContain('fine');
    const text = formatProblems(problems);
    expect(text).toMatch(
      /error +gone {2}connect-failed .*no-such-command-x: command not found.*\.mcp\.json:10.*tried again at/,
    );
    expect(text).toMatch(/broken\/SKILL\.md:1 is not text/);
    expect(text).toMatch(/broken\.md:1 is not text/);
  });
});

describe('sessions', () => {
  it('are got or made, belong to an identity, and see only their own skills', async () => {
    await skill('ann', 'anns');
    await skill('bob', 'bobs');
    await using host = await open();
    const [ann, bob] = [{ id: 'ann' }, { id: 'bob' }];
    await using one = await host.openSession('1', { identity: ann, skills: ['ann'] });
    await using two = await host.openSession('2', { identity: bob, skills: ['bob'] });
    await using again = await host.openSession('1', { identity: ann });
    const names = async (session: typeof one) =>
      (await session.agent('x').view().compile()).skills.map(({ name }) => name);
    expect([await names(one), await names(two), await names(again)]).toEqual([
      ['anns'],
      ['bobs'],
      ['anns'],
    ]);
    await expect(host.openSession('1', { identity: bob })).rejects.toMatchObject({
      code: 'identity-mismatch',
    });
    await expect(host.openSession('1')).rejects.toMatchObject({ code: 'identity-mismatch' });
    await expect(host.openSession('')).rejects.toMatchObject({ code: 'invalid-scope' });
    expect(host.inspect().sessions).toEqual([
      { id: '1', claims: 2, running: 0, subAgents: [] },
      { id: '2', claims: 1, running: 0, subAgents: [] },
    ]);
  });

  it('are closed when idle for long enough, never while something runs or somebody holds them', async () => {
    await using host = await open({ sessionIdleMs: 20 });
    const running = { release: () => undefined as void, started: false };
    host.registry.register({
      id: 'a',
      tools: async () => [
        defineTool({
          capability: 'a',
          name: 'wait',
          call: () =>
            new Promise<string>((ok) => {
              running.started = true;
              running.release = () => ok('done');
            }),
        }),
      ],
    });
    const session = await host.openSession('s');
    const { callTool } = await session.agent('x').view().compile();
    const call = callTool('a__wait', {});
    await expect.poll(() => running.started).toBe(true);
    await session.close();
    await session.close();
    const later = await host.openSession('other');
    await later.close();
    await expect.poll(() => host.inspect().sessions.map(({ id }) => id)).toEqual(['s']);
    running.release();
    expect(textOf(await call)).toBe('done');
    await expect.poll(() => host.inspect().sessions).toEqual([]);
  });

  it('have servers of their own, and end with them', async () => {
    await using host = await open({ config: { mcp_servers: { x: who('of all') } } });
    const session = await host.openSession('s', {
      servers: { x: who('of the session'), y: who('y'), broken: { args: ['z'] } },
    });
    const other = await host.openSession('t');
    const call = async (one: typeof session, name: string) =>
      textOf(await (await one.view().compile()).callTool(name, {}));
    expect(await call(session, 'x__who')).toBe('of the session');
    expect(await call(session, 'y__who')).toBe('y');
    expect(await call(other, 'x__who')).toBe('of all');
    expect((await other.view().compile()).tools).toHaveLength(1);
    expect(problems).toMatchObject([{ source: 'broken', code: 'invalid-config' }]);
    await host.registry.close({ session: 's' });
  });

  it('opened by many at once are one, set up once', async () => {
    await using host = await open();
    const servers = { x: who('x') };
    const sessions = await Promise.all(
      Array.from({ length: 20 }, () => host.openSession('s', { servers })),
    );
    const compiled = await Promise.all(sessions.map((session) => session.view().compile()));
    expect(compiled.every(({ tools }) => tools.length === 1)).toBe(true);
    expect(host.inspect().connections).toHaveLength(1);
    expect(host.inspect().sessions).toMatchObject([{ claims: 20 }]);
  });

  it('remember what is restored, and are narrowed per view', async () => {
    await skill('.agents/skills', 'a');
    await using host = await open({ config: { mcp_servers: { x: who('x') } } });
    const first = await host.openSession('s');
    const view = first.agent('coder').view();
    await (await view.compile()).callTool('activate_skill', { name: 'a' });
    const kept = JSON.parse(JSON.stringify(first.snapshot())) as Record<string, string>;
    await host.registry.close({ session: 's' });
    await using second = await host.openSession('t', { restore: kept });
    const compiled = await second.agent('coder').view().compile();
    expect(textOf(await compiled.callTool('activate_skill', { name: 'a' }))).toContain(
      'already active',
    );
    const narrow = await second
      .agent('coder')
      .view({ tools: { exclude: ['x__*'] }, skills: { exclude: ['a'] } })
      .compile();
    expect([narrow.tools, narrow.skills]).toEqual([[], []]);
  });
});

describe('agents of a configuration', () => {
  it('have servers and skills of their own, and see only what their path lets them', async () => {
    await skill('.agents/skills', 'everywhere');
    await skill('coding', 'refactor');
    await write(
      'patchbay.yaml',
      `mcp_servers: { all: ${JSON.stringify(who('all'))} }
agents:
  coder:
    mcp_servers: { code: ${JSON.stringify(who('code'))} }
    skills: { folders: [./coding], exclude: [every*] }
  coder/reader:
    tools: { exclude: ['code__*'] }
`,
    );
    await using host = await open();
    await using session = await host.openSession('s');
    const seen = async (agent: string, options = {}) => {
      const { tools, skills } = await session.agent(agent).view(options).compile();
      const ids = new Set(tools.flatMap(({ id }) => ('capability' in id ? [id.capability] : [])));
      return [...ids].filter((id) => id !== 'skills').concat(skills.map(({ name }) => name));
    };
    expect(await seen('writer')).toEqual(['all', 'everywhere']);
    expect(await seen('coder')).toEqual(['all', 'code', 'refactor']);
    expect(await seen('coder/reader')).toEqual(['all', 'refactor']);
    expect(await seen('coder/reader', { tools: { include: ['code__*'] } })).toEqual(['refactor']);
  });
});

describe('a host', () => {
  it('starts nothing by itself, and shares a server only as configured', async () => {
    await write(
      'patchbay.yaml',
      `mcp_servers:\n  own: ${JSON.stringify(who('own'))}\n  all: ${JSON.stringify({ ...who('all'), sharing: 'everyone' })}\n`,
    );
    await using host = await open();
    expect(host.inspect().connections).toEqual([]);
    for (const id of ['ann', 'bob']) {
      const session = await host.openSession(id, { identity: { id } });
      await session.view().compile();
    }
    expect(host.inspect().connections).toHaveLength(3);
  });

  it('can fail at its start when a required server does not come', async () => {
    await using host = await open({
      config: {
        mcp_servers: {
          must: { command: 'no-such-command-x', required: true },
          may: { command: 'neither-x' },
        },
      },
    });
    await expect(host.ready()).rejects.toMatchObject({
      code: 'unavailable',
      details: { servers: ['must'] },
    });
  });

  it('can name the servers that have to be there, whatever the configuration says', async () => {
    await using host = await open({
      config: {
        mcp_servers: {
          good: who('good'),
          off: { ...who('off'), disabled: true },
          unset: { ...who('x'), env: { A: '${NOT_SET}' }, required: true },
        },
      },
    });
    const failed = await host.ready({ servers: ['good', 'off', 'none'] }).catch((e: unknown) => e);
    expect(failed).toMatchObject({ details: { servers: ['unset', 'off', 'none'] } });
    expect(String(failed)).toMatch(
      /unset: .*NOT_SET.*off: it is disabled.*none: there is no server/,
    );
  });

  it('ends with everything, and is closed then', async () => {
    const host = await open({ config: { mcp_servers: { x: who('x') } } });
    const session = await host.openSession('s');
    await session.view().compile();
    const { pid } = host.inspect().connections[0]!;
    await Promise.all([host.close(), host.close()]);
    expect(() => process.kill(pid!, 0)).toThrow();
    await expect(host.openSession('s')).rejects.toMatchObject({ code: 'closed' });
  });
});
