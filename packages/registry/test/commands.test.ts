import {
  PatchbayError,
  type Capability,
  type CommandArguments,
  type CommandEntry,
  type CommandResource,
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
    await using registry = new ExtensionRegistry();
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
  });

  it.each(['hello', '/', '// comment', '/usr/bin is a folder', '/ name', 'see /review'])(
    'do not take %j for a command',
    async (line) => {
      await using registry = new ExtensionRegistry();
      registry.register(commands('a', [{ name: 'review' }]));
      expect(await registry.view().commands.resolve(line)).toBeUndefined();
    },
  );

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
