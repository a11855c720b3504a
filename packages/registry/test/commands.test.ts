import {
  PatchbayError,
  problemFrom,
  type Capability,
  type CommandArguments,
  type CommandEntry,
  type CommandResource,
  type Problem,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

function commands(
  id: string,
  entries: readonly Partial<CommandEntry>[],
  got: CommandArguments[] = [],
) {
  const capability: Capability & CommandResource = {
    id,
    listCommands: async () =>
      entries.map((entry) => ({ name: 'x', description: '', origin: id, kind: 'file', ...entry })),
    getCommand: async (name, args) => {
      got.push(args);
      if (args.raw === 'fail') throw new PatchbayError('command-arguments', '/x needs `repo`.');
      return { messages: [{ role: 'user', content: [{ type: 'text', text: `${id} ${name}` }] }] };
    },
    completeArgument: async (_name, argument, value) => [`${argument}-${value}1`, 'with space'],
  };
  return capability;
}

describe('slash commands of a view', () => {
  it('are one list; a clash goes to the greater precedence and the loser keeps its qualified name', async () => {
    const problems: Problem[] = [];
    await using registry = new ExtensionRegistry({ onProblem: (one) => void problems.push(one) });
    registry.register(commands('remote', [{ name: 'review', precedence: 0 }, { name: 'deploy' }]));
    registry.register(commands('local', [{ name: 'review', precedence: 30 }]));
    const router = registry.view().commands;
    expect((await router.list()).map(({ name, source }) => [name, source])).toEqual([
      ['deploy', 'remote'],
      ['remote:review', 'remote'],
      ['review', 'local'],
    ]);
    expect(await router.resolve('/review')).toMatchObject({ ok: true, source: 'local' });
    expect(await router.resolve('/remote:review')).toMatchObject({ ok: true, source: 'remote' });
    expect(await router.resolve('/local:review')).toMatchObject({ ok: true, source: 'local' });
    expect(problems).toMatchObject([
      {
        source: 'remote',
        code: 'command-shadowed',
        message: expect.stringContaining('/remote:review'),
      },
    ]);
  });

  it('are named the same whatever came first, and none is lost', async () => {
    const sources = [
      commands('local', [{ name: 'review', precedence: 30 }, { name: 'remote:review' }]),
      commands('remote', [{ name: 'review', kind: 'prompt' }]),
      commands('skills', [
        { name: 'review', kind: 'skill' },
        { name: 'plan', kind: 'skill', precedence: 30 },
      ]),
      commands('project', [
        { name: 'plan', precedence: 30 },
        { name: 'sum up' },
        { name: 'sum_up' },
        { name: 'c++' },
      ]),
    ];
    const names = async (order: typeof sources) => {
      const problems: Problem[] = [];
      await using registry = new ExtensionRegistry({ onProblem: (one) => void problems.push(one) });
      for (const source of order) registry.register(source);
      const router = registry.view().commands;
      const listed = await router.list();
      for (const { name, source } of listed)
        expect(await router.resolve(`/${name}`), name).toMatchObject({ ok: true, source });
      return { listed: listed.map(({ name, source }) => `${name} of ${source}`), problems };
    };
    const { listed, problems } = await names(sources);
    expect(listed).toEqual([
      'c__ of project',
      'plan of skills',
      'project:plan of project',
      'project:sum_up of project',
      'remote:review of local',
      expect.stringMatching(/^remote:review_[0-9a-f]{8} of remote$/),
      'review of local',
      'skills:review of skills',
      'sum_up of project',
    ]);
    expect((await names(sources.toReversed())).listed).toEqual(listed);
    expect(problems).toMatchObject(
      ['project', 'remote', 'skills', 'project'].map((source) => ({
        source,
        code: 'command-shadowed',
      })),
    );
  });

  it('list a file once that two sources have', async () => {
    await using registry = new ExtensionRegistry({
      onProblem: ({ message }) => expect.unreachable(message),
    });
    const file = { name: 'review', origin: '/home/me/commands/review.md' };
    registry.register(commands('a', [file]));
    registry.register(commands('b', [file]));
    const router = registry.view().commands;
    expect((await router.list()).map(({ name, source }) => [name, source])).toEqual([
      ['review', 'a'],
    ]);
    expect(await router.resolve('/b:review')).toMatchObject({ ok: true, source: 'b' });
  });

  it('are typed in either form of a letter', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(commands('a', [{ name: 're\u0301sume\u0301' }]));
    expect(await registry.view().commands.resolve('/r\u00e9sum\u00e9')).toMatchObject({ ok: true });
  });

  it('of a source that fails are missed by name', async () => {
    await using registry = new ExtensionRegistry({ onProblem: () => undefined });
    const broken = commands('github', []);
    broken.listCommands = async () => {
      throw new PatchbayError('connect-failed', 'No such program.');
    };
    registry.register(broken);
    expect(await registry.view().commands.resolve('/review')).toMatchObject({
      message: 'Unknown command: /review. The commands of "github" could not be listed.',
    });
  });

  it.each([
    'hello',
    '/',
    '// comment',
    '/usr/bin is a folder',
    '/usr/bin/x is broken',
    '/ name',
    'see /review',
    'first\n/review',
    '/* no command */',
    '/review/ matches it',
    '/review, please',
    '/\u200bx',
  ])('do not take %j for a command', async (line) => {
    await using registry = new ExtensionRegistry();
    registry.register(commands('a', [{ name: 'review' }]));
    expect(await registry.view().commands.resolve(line)).toBeUndefined();
  });

  it('name what was perhaps meant', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(commands('a', [{ name: 'review' }, { name: 'git:commit' }]));
    const router = registry.view().commands;
    expect(await router.resolve('/reveiw now')).toMatchObject({
      ok: false,
      code: 'command-unknown',
      message: 'Unknown command: /reveiw. Did you mean /review?',
    });
    expect(await router.resolve('/comit')).toMatchObject({ suggestions: ['git:commit'] });
    expect(await router.resolve('/zzzzzz')).toMatchObject({ suggestions: [] });
  });

  it('split what is typed as a shell would, over several lines, and keep it raw', async () => {
    await using registry = new ExtensionRegistry();
    const got: CommandArguments[] = [];
    registry.register(commands('a', [{ name: 'x' }], got));
    const router = registry.view().commands;
    await router.resolve(
      `/x one "two words" 'it''s' a\\ b don't --to=me --flag value k="v w" empty=\nnext "" `,
    );
    expect(got[0]).toMatchObject({
      raw: `one "two words" 'it''s' a\\ b don't --to=me --flag value k="v w" empty=\nnext ""`,
      positional: [
        'one',
        'two words',
        'its',
        'a b',
        "don't",
        '--to=me',
        '--flag',
        'value',
        'k=v w',
        'empty=',
        'next',
        '',
      ],
      named: { to: 'me', flag: 'value', k: 'v w', empty: '' },
    });
  });

  it.each([
    ['/x\n\n  first\nsecond', '  first\nsecond', ['first', 'second']],
    ['/x  a', 'a', ['a']],
    ['/x\r\na', 'a', ['a']],
    ['/x\u00a0a', 'a', ['a']],
    ['\n  /x a', 'a', ['a']],
    ['/x /y b', '/y b', ['/y', 'b']],
    ["/x don't say it can't", "don't say it can't", ["don't", 'say', 'it', "can't"]],
    ['/x C:\\temp \\d+ a\\ b \\"', 'C:\\temp \\d+ a\\ b \\"', ['C:\\temp', '\\d+', 'a b', '"']],
    ['/x "a\\" b', '"a\\" b', ['"a"', 'b']],
    ['/x 5" by 6', '5" by 6', ['5"', 'by', '6']],
    ['/x', '', []],
  ])('understand %j', async (line, raw, positional) => {
    await using registry = new ExtensionRegistry();
    const got: CommandArguments[] = [];
    registry.register(commands('a', [{ name: 'x' }], got));
    expect(await registry.view().commands.resolve(line)).toMatchObject({ ok: true });
    expect(got[0]).toMatchObject({ raw, positional });
  });

  it('tell what a command reported while it was resolved', async () => {
    const problems: Problem[] = [];
    await using registry = new ExtensionRegistry({ onProblem: (one) => void problems.push(one) });
    const source: Capability & CommandResource = {
      ...commands('a', [{ name: 'x' }]),
      getCommand: async (_name, _args, context) => {
        context.report(problemFrom('a', new Error('half of it')));
        return { messages: [] };
      },
    };
    registry.register(source);
    expect(await registry.view().commands.resolve('/x')).toMatchObject({ ok: true });
    expect(problems).toMatchObject([{ source: 'a', message: 'half of it' }]);
  });

  it('say why a command could not be resolved, and never throw', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(commands('a', [{ name: 'x' }]));
    expect(await registry.view().commands.resolve('/x fail')).toEqual({
      ok: false,
      code: 'command-arguments',
      message: '/x needs `repo`.',
      suggestions: [],
    });
  });

  it('complete the argument that is being typed, by place or by name', async () => {
    await using registry = new ExtensionRegistry();
    const source = commands('a', [
      { name: 'x', arguments: [{ name: 'repo' }, { name: 'branch' }] },
    ]);
    source.completeArgument = async (_name, argument, value, _context, given) => [
      JSON.stringify([argument, value, given]).replaceAll(/[^\w,]/g, ''),
    ];
    registry.register(source);
    const router = registry.view().commands;
    const lines = [
      '/x ',
      '/x a',
      '/x a ',
      '/x branch=m',
      '/x branch=m a',
      '/x --branch ',
      '/x --branch=',
      '/x "a b',
      '/x "a b" m',
    ];
    expect(await Promise.all(lines.map((line) => router.complete(line)))).toEqual([
      ['/x repo,,'],
      ['/x repo,a,'],
      ['/x a branch,,repoa'],
      ['/x branch=branch,m,'],
      ['/x branch=m repo,a,branchm'],
      ['/x --branch branch,,'],
      ['/x --branch=branch,,'],
      ['/x repo,ab,'],
      ['/x "a b" branch,m,repoab'],
    ]);
    expect(await router.complete('/x a b c')).toEqual([]);
    expect(await router.complete('/unknown a')).toEqual([]);
  });

  it('complete names, then arguments', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(
      commands('a', [{ name: 'review', arguments: [{ name: 'repo' }, { name: 'branch' }] }]),
    );
    const router = registry.view().commands;
    expect(await router.complete('/re')).toEqual(['/review']);
    expect(await router.complete('/review ab')).toEqual([
      '/review repo-ab1',
      '/review "with space"',
    ]);
    expect(await router.complete('/review ab m')).toEqual([
      '/review ab branch-m1',
      '/review ab "with space"',
    ]);
    expect(await router.complete('/review a b c')).toEqual([]);
    expect(await router.complete('hello')).toEqual([]);
  });
});
