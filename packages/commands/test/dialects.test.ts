import type { CommandDialect } from '@patchbay/commands';
import { describe, expect, it } from 'vitest';

import { benchFolder, type BenchFolder } from './bench-folder.ts';

async function withCommand(
  dialect: CommandDialect,
  file: string,
  during: (bench: BenchFolder) => Promise<void>,
): Promise<void> {
  await using bench = await benchFolder();
  await bench.write('x.md', file);
  bench.register({ dialect });
  await during(bench);
}

/** What it is about, the template, what is typed, what it comes to. */
type Case = readonly [string, string, string, string];

const CASES: Readonly<Record<CommandDialect, readonly Case[]>> = {
  claude: [
    ['all arguments are as typed, quotes included', 'Fix $ARGUMENTS.', '"a b" c', 'Fix "a b" c.'],
    ['positions count from 0', '$0|$1|$2', '"a b" c', 'a b|c|$2'],
    ['positions by index count from 0', '$ARGUMENTS[1] $ARGUMENTS[0] $1', 'x y', 'y x y'],
    ['without $0 the first is $1', 'PR $1 for $2', '7 me', 'PR 7 for me'],
    ['an escaped $0 does not count', String.raw`\$0: $1`, '7', '$0: 7'],
    ['quotes group and vanish', '$0|$1|$2', `"a b" 'c d' e"f g"`, 'a b|c d|ef g'],
    ['a missing one stays as written', '$0 $1 $ARGUMENTS[2]', 'a', 'a $1 $ARGUMENTS[2]'],
    ['surplus is only in $ARGUMENTS', '$0 ($ARGUMENTS)', 'a b c', 'a (a b c)'],
    [
      'what is typed is added where it has no place',
      'Review.',
      'src "x"',
      'Review.\n\nARGUMENTS: src "x"',
    ],
    ['nothing is added where nothing was typed', 'Review.', '  ', 'Review.'],
    ['a backslash escapes', String.raw`costs \$1, \$name and $0`, '5', 'costs $1, $name and 5'],
    [
      'a backslash before anything else stays',
      String.raw`\n \$ \\ $0`,
      '5',
      String.raw`\n \$ \\ 5`,
    ],
    ['$$ means nothing', '$$0', '5', '$5'],
    [
      'prices and awk stay without arguments',
      "awk '{print $1}' costs $5",
      '',
      "awk '{print $1}' costs $5",
    ],
    ['the longest digits count', '$0 $10', '0 1 2 3 4 5 6 7 8 9 X', '0 X'],
    ['an apostrophe is none of the quotes', '$0 $1', "don't stop", "don't stop"],
    [
      'the end of $ARGUMENTS is the end of the word',
      '$ARGUMENTS_ $ARGUMENTS.',
      'a',
      '$ARGUMENTS_ a.',
    ],
  ],
  opencode: [
    ['all arguments are as typed', 'Fix $ARGUMENTS.', '"a b" c', 'Fix "a b" c.'],
    ['positions count from 1', '$1|$2', 'a b', 'a|b'],
    ['the highest takes the rest', '$1: $2', 'a focus on b', 'a: focus on b'],
    ['the highest takes the rest wherever it stands', '$2, $1', 'a b "c d"', 'b c d, a'],
    ['a missing one is empty', '[$1][$2]', 'a', '[a][]'],
    ['quotes of both kinds group, and are cut outside', '$1|$2|$3', `"a b" 'c d' e`, 'a b|c d|e'],
    ['a quote in a word begins another one', '$1|$2|$3', 'a"b c" d', 'a|b c|d'],
    ['an image is one word', '$1|$2', '[Image 1] look', '[Image 1]|look'],
    ['$10 is ten', '$10', '1 2 3 4 5 6 7 8 9 X', 'X'],
    ['what is typed is added where it has no place', 'Review.', 'src', 'Review.\n\nsrc'],
    ['nothing is escaped', String.raw`\$1 $$1`, 'a', String.raw`\a $a`],
    ['there are no names', '$file', 'a', '$file\n\na'],
    ['there is no index', '$ARGUMENTS[0]', 'a b', 'a b[0]'],
    ['$0 is none of them', '[$0] $1', 'a', '[$0] a'],
  ],
  codex: [
    ['all arguments are joined by one space', 'Fix $ARGUMENTS.', '"a b"   c', 'Fix a b c.'],
    ['positions count from 1', '$1|$2', '"a b" c', 'a b|c'],
    ['only double quotes group', '$1|$2', `'a b'`, "'a|b'"],
    ['a missing one is empty', '[$1][$2]', 'a', '[a][]'],
    ['surplus is only in $ARGUMENTS', '$1 ($ARGUMENTS)', 'a b c', 'a (a b c)'],
    ['names are given by name', 'on $BRANCH for $WHO', 'WHO="a b" BRANCH=main', 'on main for a b'],
    ['names are in capitals', 'on $BRANCH, not $branch', 'BRANCH=main', 'on main, not $branch'],
    ['$$ stays $$', '$$ $$1 $1', 'a', '$$ $$1 a'],
    ['a backslash escapes nothing', String.raw`\$1`, 'a', String.raw`\a`],
    ['what is typed is dropped where it has no place', 'Review.', 'src', 'Review.'],
  ],
  cursor: [
    ['what is typed is added', 'Review.', 'src "x"', 'Review.\n\nsrc "x"'],
    [
      'there are no placeholders',
      'cost $1 $ARGUMENTS $name',
      'src',
      'cost $1 $ARGUMENTS $name\n\nsrc',
    ],
    ['nothing is escaped', String.raw`\$1`, '', String.raw`\$1`],
  ],
  patchbay: [
    ['all arguments are as typed', 'Fix $ARGUMENTS.', '"a b" c', 'Fix "a b" c.'],
    ['positions count from 1, the last takes the rest', 'Do $1 with $2', 'a b c', 'Do a with b c'],
    ['a missing one is empty', '[$1][$2]', 'a', '[a][]'],
    ['a backslash escapes', String.raw`\$1 $1`, 'a', '$1 a'],
    ['what is typed is added where it has no place', 'Review.', 'src', 'Review.\n\nsrc'],
  ],
};

for (const [dialect, cases] of Object.entries(CASES) as [CommandDialect, readonly Case[]][]) {
  describe(`arguments in files of ${dialect}`, () => {
    it.each(cases)('%s', async (_name, template, typed, expected) => {
      await withCommand(dialect, template, async ({ text }) => {
        expect(await text(`/x ${typed}`)).toBe(expected);
      });
    });
  });
}

describe.each(Object.keys(CASES) as CommandDialect[])('a value in a file of %s', (dialect) => {
  it.each(["$& $1 $$ $ARGUMENTS $` $'", '!`rm -rf x`', '!{rm}', '@/etc/passwd', '@{x}'])(
    'is text, also %j',
    async (value) => {
      await withCommand(dialect, 'Look: $ARGUMENTS', async ({ text, problems }) => {
        const expected = dialect === 'cursor' ? `Look: $ARGUMENTS\n\n${value}` : `Look: ${value}`;
        expect(await text(`/x ${value}`)).toBe(expected);
        expect(problems).toEqual([]);
      });
    },
  );
});

describe('named arguments', () => {
  const NAMED = '---\narguments: [issue, branch]\n---\n$issue on $branch, $other';

  it.each([
    ['claude', '42 hot', '42 on hot, $other'],
    ['claude', 'branch=hot issue=7', '7 on hot, $other'],
    ['claude', 'branch=hot 7', '7 on hot, $other'],
    ['claude', '--branch "a b" 7', '7 on a b, $other'],
    ['claude', '7', '7 on $branch, $other'],
    ['claude', '7 hot surplus', '7 on hot, $other'],
    ['patchbay', '7 hot and more', '7 on hot and more, $other'],
    ['patchbay', '7', '7 on , $other'],
  ] as const)('%s: /x %s', async (dialect, typed, expected) => {
    await withCommand(dialect, NAMED, async ({ text, commands }) => {
      expect(await text(`/x ${typed}`)).toBe(expected);
      expect((await commands.list())[0]).toMatchObject({
        arguments: [{ name: 'issue' }, { name: 'branch' }],
        hint: '[issue] [branch]',
      });
    });
  });

  it('may be described and required, and what is missing is said', async () => {
    const file =
      '---\narguments:\n  - name: issue\n    description: Its number.\n    required: yes\n  - branch\n---\n$issue $branch';
    await withCommand('patchbay', file, async ({ commands, text }) => {
      expect((await commands.list())[0]).toMatchObject({
        arguments: [
          { name: 'issue', description: 'Its number.', required: true },
          { name: 'branch' },
        ],
        hint: '<issue> [branch]',
      });
      expect(await commands.resolve('/x branch=a')).toMatchObject({
        ok: false,
        code: 'command-arguments',
        message: '/x needs `issue`. Give it as issue=value.',
      });
      expect(await text('/x issue="" b')).toBe(' b');
    });
  });

  it('of Codex are all required, and listed', async () => {
    await withCommand('codex', 'Fix $FILE on $BRANCH, $FILE', async ({ commands }) => {
      expect((await commands.list())[0]).toMatchObject({
        arguments: [
          { name: 'FILE', required: true },
          { name: 'BRANCH', required: true },
        ],
        hint: '<FILE> <BRANCH>',
      });
      expect(await commands.resolve('/x FILE=a')).toMatchObject({
        ok: false,
        code: 'command-arguments',
        message: expect.stringContaining('`BRANCH`') as unknown,
      });
    });
  });

  it.each(['constructor', '__proto__', 'toString'])('may be called %s', async (name) => {
    await withCommand('claude', `---\narguments: ${name}\n---\n[$${name}]`, async ({ text }) => {
      expect(await text('/x')).toBe(`[$${name}]`);
      expect(await text('/x a')).toBe('[a]');
    });
  });

  it('that no placeholder can name are a problem', async () => {
    const file = '---\narguments: [issue-number, "a(b"]\n---\n$0 $issue-number';
    await withCommand('claude', file, async ({ text, problems }) => {
      expect(await text('/x 7')).toBe('7 $issue-number');
      expect(problems.map(({ code, line }) => [code, line])).toEqual([
        ['argument-name', 2],
        ['argument-name', 2],
      ]);
    });
  });
});

it('says where the base was guessed, and only there', async () => {
  await withCommand(
    'claude',
    '---\ndescription: x\n---\n\nFirst.\nPR $1',
    async ({ text, problems, root }) => {
      await text('/x 7');
      expect(problems).toMatchObject([
        { code: 'positional-base-guessed', severity: 'warning', file: `${root}/x.md`, line: 6 },
      ]);
    },
  );
  for (const [dialect, template] of [
    ['claude', '$0 $1'],
    ['claude', '$ARGUMENTS'],
    ['opencode', '$1'],
  ] as const)
    await withCommand(dialect, template, async ({ text, problems }) => {
      await text('/x 7');
      expect(problems).toEqual([]);
    });
});
