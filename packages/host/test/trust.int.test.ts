import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { createHost, type HostOptions } from '@patchbay/host';
import type { Problem, TrustRequest } from '@patchbay/protocols';
import { scriptedServer } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

let root: string;
let problems: Problem[];
let asked: TrustRequest[];

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-trust-')));
  problems = [];
  asked = [];
});
afterEach(() => rm(root, { recursive: true, force: true }));

const open = (options: HostOptions = {}) =>
  createHost({
    cwd: root,
    home: false,
    env: {},
    onProblem: (problem) => void problems.push(problem),
    ...options,
  });
/** Asks, and answers with the first of `answers`, then the next. */
const says =
  (...answers: readonly (boolean | Promise<boolean> | Error)[]) =>
  async (request: TrustRequest): Promise<boolean> => {
    asked.push(request);
    const answer = await answers[Math.min(asked.length, answers.length) - 1]!;
    if (answer instanceof Error) throw answer;
    return answer;
  };
async function write(path: string, content: unknown): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(
    join(root, path),
    typeof content === 'string' ? content : JSON.stringify(content),
  );
}
const shop = () => scriptedServer({ tools: [{ name: 'buy' }, { name: 'look' }] });
const names = (tools: readonly { readonly definition: { readonly name: string } }[]) =>
  tools.map(({ definition }) => definition.name).filter((name) => name.includes('__'));

describe('a server of a file that came with the project', () => {
  it('is not started without somebody to ask, and the problem says how to allow it', async () => {
    await using server = await shop();
    await write('.mcp.json', { mcpServers: { shop: server.config } });
    await using host = await open();
    const { tools, problems: told } = await host.registry.view().compile();
    expect(names(tools)).toEqual([]);
    expect(told).toMatchObject([
      { source: 'shop', code: 'not-trusted', message: expect.stringContaining('Give `trust` to') },
    ]);
    expect(told[0]!.message).toContain('.mcp.json:1');
    expect(host.inspect().connections).toEqual([]);
    expect(server.requests).toEqual([]);
    const hash = expect.stringMatching(/^sha256:/);
    expect(host.inspect()).toMatchObject({
      servers: [{ id: 'shop', trust: 'refused', hash }],
      trust: [{ name: 'shop', decision: 'refused', reason: 'there is no trust policy', hash }],
    });
  });

  it.each(['.mcp.json', '.vscode/mcp.json', 'opencode.json'])('%s: asked once', async (file) => {
    await using server = await shop();
    const { command, args } = server.config as {
      readonly command: string;
      readonly args: readonly string[];
    };
    await write(
      file,
      file === 'opencode.json'
        ? { mcp: { shop: { type: 'local', command: [command, ...args] } } }
        : { servers: { shop: server.config } },
    );
    await using host = await open({ trust: says(true) });
    expect(asked).toEqual([]);
    expect(host.inspect().servers).toMatchObject([{ id: 'shop', trust: 'unasked' }]);
    const [one, two] = await Promise.all([
      host.registry.view({ session: 'a' }).compile(),
      host.registry.view({ session: 'b' }).compile(),
    ]);
    expect([names(one.tools), names(two.tools)]).toEqual([
      ['shop__buy', 'shop__look'],
      ['shop__buy', 'shop__look'],
    ]);
    expect(asked).toEqual([
      {
        kind: 'server',
        name: 'shop',
        origin: `${file}:1`,
        wants: [expect.stringMatching(/^start /)],
        hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      },
    ]);
    const { servers, trust } = host.inspect();
    expect(trust).toMatchObject([{ ...asked[0], decision: 'trusted' }]);
    expect(servers).toMatchObject([{ trust: 'trusted', hash: asked[0]!.hash }]);
  });

  it('is refused by a no, and by a policy that fails', async () => {
    await using server = await shop();
    await write('.mcp.json', { mcpServers: { shop: server.config } });
    for (const no of [false, new Error('The dialog broke.')]) {
      asked = [];
      await using host = await open({ trust: says(no) });
      const first = await host.registry.view().compile();
      await host.registry.view().compile();
      expect(first.problems.map(({ code }) => code)).toEqual(['not-trusted']);
      expect(asked).toHaveLength(1);
      expect(host.inspect().trust).toMatchObject([{ decision: 'refused' }]);
      if (no instanceof Error) expect(first.problems[0]!.message).toContain('The dialog broke.');
    }
    expect(server.requests).toEqual([]);
  });

  it('nobody waits for an answer that takes long; the tools join when it comes', async () => {
    await using server = await shop();
    await write('.mcp.json', { mcpServers: { shop: server.config } });
    let answer: (said: boolean) => void = () => undefined;
    const given = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    await using host = await open({ trust: says(given) });
    const view = host.registry.view({ session: 's' });
    const first = await view.compile({ deadlineMs: 50 });
    expect(first.problems.map(({ code }) => code)).toContain('source-slow');
    expect(host.inspect().trust).toMatchObject([{ decision: 'open' }]);
    answer(true);
    await vi.waitFor(async () => {
      expect(names((await view.compile()).tools)).toEqual(['shop__buy', 'shop__look']);
    });
    expect(asked).toHaveLength(1);
  });

  it('is asked about again when it is another one, and a no then ends it', async () => {
    await using server = await shop();
    await write('.mcp.json', { mcpServers: { shop: server.config } });
    await using host = await open({ trust: says(true, false), watch: false });
    const view = host.registry.view();
    expect(names((await view.compile()).tools)).toHaveLength(2);
    const edited = { ...server.config, env: { MODE: 'other' } };
    await write('.mcp.json', { mcpServers: { shop: edited } });
    await host.reload();
    const { tools, problems: told } = await view.compile();
    expect(names(tools)).toEqual([]);
    expect(told.map(({ code }) => code)).toEqual(['not-trusted']);
    expect(new Set(asked.map(({ hash }) => hash)).size).toBe(2);
    await vi.waitFor(() => expect(host.inspect().connections).toEqual([]));
    // Back to what was trusted: nobody is asked.
    await write('.mcp.json', { mcpServers: { shop: server.config } });
    await host.reload();
    expect(names((await view.compile()).tools)).toHaveLength(2);
    expect(asked).toHaveLength(2);
  });

  it('that is required makes `ready` fail with the reason', async () => {
    await using server = await shop();
    await write('.mcp.json', { mcpServers: { shop: { ...server.config, required: true } } });
    await using host = await open();
    await expect(host.ready()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('not trusted'),
    });
  });

  it('shows placeholders as they are written: what stands for them may be secret', async () => {
    await write('.mcp.json', { mcpServers: { web: { url: 'http://127.0.0.1:1/${KEY}' } } });
    await using host = await open({ trust: says(false), env: { KEY: 'hush-hush' } });
    await host.registry.view().compile();
    expect(asked[0]!.wants).toEqual(['connect to http://127.0.0.1:1/${KEY}', 'be given ${KEY}']);
    expect(JSON.stringify(host.inspect().trust)).not.toContain('hush-hush');
  });
});

it('a question shows everything that a server is given, and no value that may be secret', async () => {
  await write('one.env', 'A=1');
  await write('.mcp.json', {
    mcpServers: {
      run: {
        command: 'no-such-x',
        args: ['--', 'x'.repeat(600)],
        cwd: 'sub',
        env: { NODE_OPTIONS: '--require ./evil.cjs', KEY: '${TOKEN}' },
        envFile: 'one.env',
      },
      web: { url: 'http://127.0.0.1:1/', headers: { 'X-Key': 'Bearer ${TOKEN}', 'X-Own': 'hush' } },
    },
  });
  await using host = await open({ trust: says(false), env: { TOKEN: 'hush-hush' } });
  await host.registry.view().compile();
  const wants = Object.fromEntries(asked.map((request) => [request.name, request.wants]));
  expect(wants['run']).toEqual([
    expect.stringMatching(/^start no-such-x -- x{400,} … \(\d+ characters more\)$/),
    'run in sub',
    'run with NODE_OPTIONS, KEY set',
    'be given what is in one.env',
    'be given ${TOKEN}',
  ]);
  expect(wants['web']).toEqual([
    'connect to http://127.0.0.1:1/',
    'be sent the headers X-Key, X-Own',
    'be given ${TOKEN}',
  ]);
  expect(JSON.stringify(asked)).not.toContain('hush');
});

describe('what code and patchbay.yaml say', () => {
  it('starts without a question', async () => {
    await using server = await shop();
    await write('patchbay.yaml', JSON.stringify({ mcp_servers: { one: server.config } }));
    await write('named.json', { mcpServers: { two: server.config } });
    const trust = says(false);
    await using file = await open({ trust });
    await using session = await file.openSession('s', {
      servers: { three: server.config as object },
    });
    expect(names((await session.view().compile()).tools)).toHaveLength(4);
    await using named = await open({ trust, config: 'named.json' });
    expect(names((await named.registry.view().compile()).tools)).toHaveLength(2);
    expect(asked).toEqual([]);
  });
});

describe('a skill of the project', () => {
  const skill = (frontmatter: string) =>
    write(
      '.agents/skills/deploy/SKILL.md',
      `---\nname: deploy\ndescription: Deploys.\n${frontmatter}---\nDeploy it.\n`,
    );

  it('is there without a question, and its servers only with a yes', async () => {
    await using server = await shop();
    await skill('always_active: true\n');
    await write('.agents/skills/deploy/mcp.json', { shop: server.config });
    await using refused = await open();
    const without = await refused.registry.view({ session: 's' }).compile();
    expect(without.skills.map(({ name }) => name)).toEqual(['deploy']);
    expect(names(without.tools)).toEqual([]);
    expect(without.problems).toMatchObject([{ code: 'skill-consent' }]);
    expect(without.problems[0]!.message).toMatch(/be active always; to start the server "shop"/);
    expect(server.requests).toEqual([]);

    await using host = await open({ trust: says(true) });
    const view = host.registry.view({ session: 's' });
    expect(names((await view.compile()).tools)).toEqual(['deploy-shop__buy', 'deploy-shop__look']);
    // Another session: the same content, no other question.
    await host.registry.view({ session: 't' }).compile();
    expect(asked).toMatchObject([{ kind: 'skill', name: 'deploy' }]);
    const turn = view.beginTurn({ userText: 'Hello.' });
    const { instructions } = await turn.prepare();
    expect(instructions.map(({ text }) => text).join()).toContain('Deploy it.');
    await turn.close();
  });

  it('has placeholders of its servers filled in, and the question says which', async () => {
    await using server = await shop();
    const { args = [], ...config } = server.config as { readonly args?: readonly string[] };
    const [last = ''] = args.slice(-1);
    const written = { ...config, args: [...args.slice(0, -1), '${LAST}'] };
    await skill('always_active: true\n');
    await write('.agents/skills/deploy/mcp.json', { shop: written });
    await using host = await open({ trust: says(true), env: { LAST: last } });
    const { tools } = await host.registry.view({ session: 's' }).compile();
    expect(names(tools)).toEqual(['deploy-shop__buy', 'deploy-shop__look']);
    expect(asked[0]!.wants).toContain('give the server "shop" ${LAST}');
    expect(JSON.stringify(host.inspect().trust)).not.toContain(last);

    await using without = await open({ trust: says(true) });
    const compiled = await without.registry.view({ session: 's' }).compile();
    expect(names(compiled.tools)).toEqual([]);
    expect(compiled.skills.map(({ name }) => name)).toEqual(['deploy']);
    expect(compiled.problems).toMatchObject([
      { code: 'env-missing', message: expect.stringContaining('LAST, which is not set') },
    ]);
  });

  it('of the home folder needs no answer', async () => {
    await using server = await shop();
    await write(
      'home/.agents/skills/deploy/SKILL.md',
      '---\nname: deploy\ndescription: D.\nalways_active: true\n---\nDo.\n',
    );
    await write('home/.agents/skills/deploy/mcp.json', { shop: server.config });
    await mkdir(join(root, 'project'));
    await using host = await open({ cwd: join(root, 'project'), home: join(root, 'home') });
    const { tools } = await host.registry.view({ session: 's' }).compile();
    expect(names(tools)).toHaveLength(2);
  });
});

describe('a command of the project', () => {
  it('runs what it says only with a yes, one for each thing', async () => {
    await write('.claude/commands/who.md', 'I am !`whoami` in @notes.txt.');
    const ran: string[] = [];
    const commands = {
      runShell: async ({ command }: { readonly command: string }) => {
        ran.push(command);
        return 'me';
      },
      readFile: async () => 'a note',
    };
    await using silent = await open({ commands });
    expect(JSON.stringify(await silent.registry.view().commands.resolve('/who'))).toMatch(
      /not trusted/,
    );
    expect(ran).toEqual([]);

    await using host = await open({ commands, trust: says(true) });
    await host.registry.view().commands.resolve('/who');
    await host.registry.view().commands.resolve('/who');
    expect(ran).toEqual(['whoami', 'whoami']);
    expect(asked).toMatchObject([
      { kind: 'commands', name: '/who', wants: ['run whoami'] },
      { kind: 'commands', name: '/who', wants: ['read notes.txt'] },
    ]);
  });
});
