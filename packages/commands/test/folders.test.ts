import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { defaultCommandFolders, markdownCommands } from '@patchbay/commands';
import { testContext } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';

import { benchFolder, type BenchFolder } from './bench-folder.ts';

const names = async ({ commands }: BenchFolder) => (await commands.list()).map(({ name }) => name);
const codes = ({ problems }: BenchFolder) => problems.map(({ code }) => code);

describe('what a file is called by', () => {
  it('is its path: folders are namespaces, its name is one word', async () => {
    await using bench = await benchFolder();
    await bench.write('review.md', 'a');
    await bench.write('git/commit.md', 'b');
    await bench.write('git/pull request/open it.MD', 'c');
    await bench.write('.hidden/x.md', 'd');
    await bench.write('node_modules/x/y.md', 'e');
    await bench.write('notes.txt', 'f');
    bench.register();
    expect(await names(bench)).toEqual(['git:commit', 'git:pull-request:open-it', 'review']);
    expect(await bench.text('/git:pull-request:open-it')).toBe('c');
    expect(bench.problems).toEqual([]);
  });

  it('is not what its frontmatter calls it', async () => {
    await using bench = await benchFolder();
    await bench.write('review.md', '---\nname: other\n---\nReview.');
    bench.register();
    expect(await names(bench)).toEqual(['review']);
  });

  it('belongs to one file of two, and the other is a problem', async () => {
    await using bench = await benchFolder();
    await bench.write('git/commit.md', 'a');
    await bench.write('git:commit.md', 'b');
    bench.register();
    expect(await bench.text('/git:commit')).toBe('a');
    expect(bench.problems).toMatchObject([
      { code: 'command-duplicate', file: join(bench.root, 'git:commit.md') },
    ]);
  });
});

describe('what a file says about itself', () => {
  it.each([
    ['---\ndescription: Reviews.\n---\nText.', 'Reviews.'],
    ['# Title\n\nThe first line of text.\nThe second.', 'The first line of text.'],
    ['# Title', 'Title'],
    ['---\ndescription: |\n  Two\n  lines\n---\nx', 'Two lines'],
    ['---\ndescription: [a, b]\n---\nx', 'a b'],
    ['---\ndescription: Usage: /x <a>\n---\nx', 'Usage: /x <a>'],
    ['---\ndescription: "a\\e[31m\\u202Eb"\n---\nx', 'a [31mb'],
    ['```\ncode\n```\nText.', 'code'],
  ])('%j is described by %j', async (file, description) => {
    await using bench = await benchFolder();
    await bench.write('x.md', file);
    bench.register();
    expect((await bench.commands.list())[0]).toMatchObject({ description });
  });

  it.each([
    ['[a] [b]', '[a] [b]'],
    ['[a]', '[a]'],
    ['[a, b]', '[a, b]'],
    ['"<file>"', '<file>'],
    ['', undefined],
  ])('a hint %j is shown as %j', async (hint, shown) => {
    await using bench = await benchFolder();
    await bench.write('x.md', `---\nargument-hint: ${hint}\n---\nx`);
    bench.register();
    expect((await bench.commands.list())[0]!.hint).toBe(shown);
  });

  it('is kept as written, keys of other tools included', async () => {
    await using bench = await benchFolder();
    await bench.write(
      'x.md',
      '---\nagent: build\nmodel: a/b\nsubtask: true\nhooks: {x: y}\n---\nx',
    );
    bench.register();
    expect((await bench.commands.list())[0]!.frontmatter).toEqual({
      agent: 'build',
      model: 'a/b',
      subtask: 'true',
      hooks: { x: 'y' },
    });
    expect(bench.problems).toEqual([]);
  });

  it('may be that it is no command for users, or nothing: both are said', async () => {
    await using bench = await benchFolder();
    await bench.write('hidden.md', '---\nuser-invocable: no\n---\nx');
    await bench.write('empty.md', '');
    await bench.write('blank.md', '---\nuser-invocable:\n---\nx');
    bench.register();
    expect(await names(bench)).toEqual(['blank', 'empty']);
    expect(bench.problems).toMatchObject([
      { code: 'empty-command', file: join(bench.root, 'empty.md') },
      { code: 'not-a-command', file: join(bench.root, 'hidden.md'), line: 2 },
    ]);
  });
});

describe('links', () => {
  it('to files and folders are followed, whatever they are called here', async () => {
    await using bench = await benchFolder();
    await using other = await benchFolder();
    await other.write('a.md', 'linked file');
    await other.write('team/b.md', 'linked folder');
    await symlink(join(other.root, 'a.md'), join(bench.root, 'mine.md'));
    await symlink(join(other.root, 'team'), join(bench.root, 'ours'));
    bench.register();
    expect(await names(bench)).toEqual(['mine', 'ours:b']);
    expect(await bench.text('/mine')).toBe('linked file');
    expect(await bench.text('/ours:b')).toBe('linked folder');
    expect((await bench.commands.list())[0]!.origin).toBe(join(other.root, 'a.md'));
    expect(bench.problems).toEqual([]);
  });

  it('that leave the folder are left out where they may not, and said', async () => {
    await using bench = await benchFolder();
    await using other = await benchFolder();
    await other.write('a.md', 'x');
    await bench.write('in/a.md', 'x');
    await symlink(join(other.root, 'a.md'), join(bench.root, 'file.md'));
    await symlink(other.root, join(bench.root, 'folder'));
    await symlink(join(bench.root, 'in/a.md'), join(bench.root, 'inside.md'));
    bench.register({ followLinks: false });
    expect(await names(bench)).toEqual(['in:a', 'inside']);
    expect(codes(bench)).toEqual(['link-refused', 'link-refused']);
  });

  it('to what is no Markdown file, and to nothing, are problems', async () => {
    await using bench = await benchFolder();
    await using other = await benchFolder();
    await other.write('secret.pem', 'key');
    await symlink(join(other.root, 'secret.pem'), join(bench.root, 'a.md'));
    await symlink(join(other.root, 'none.md'), join(bench.root, 'b.md'));
    await symlink(join(other.root, 'secret.pem'), join(bench.root, 'c.pem'));
    bench.register();
    expect(await names(bench)).toEqual([]);
    expect(codes(bench)).toEqual(['link-refused', 'dangling-link']);
  });

  it('in a circle end, and what is reached twice is one', async () => {
    await using bench = await benchFolder();
    await bench.write('git/commit.md', 'x');
    await symlink(bench.root, join(bench.root, 'git/up'));
    await symlink(join(bench.root, 'git'), join(bench.root, 'again'));
    bench.register();
    expect(await names(bench)).toEqual(['git:commit']);
    expect(bench.problems).toEqual([]);
  });

  it('between the folders of two tools make one command, not two', async () => {
    await using bench = await benchFolder();
    await bench.write('.agents/commands/review.md', 'x');
    await mkdir(join(bench.root, '.claude'));
    await symlink(join(bench.root, '.agents/commands'), join(bench.root, '.claude/commands'));
    for (const tool of ['agents', 'claude'])
      bench.register({ id: tool, folder: join(bench.root, `.${tool}/commands`) });
    expect(await names(bench)).toEqual(['review']);
    expect(bench.problems).toEqual([]);
  });
});

describe('what cannot be read', () => {
  it('costs only itself', async () => {
    await using bench = await benchFolder();
    await bench.write('good.md', 'Fine.');
    await bench.write('binary.md', 'a\0b');
    await bench.write('large.md', 'x'.repeat(1024 * 1024 + 1));
    await bench.write('latin.md', Buffer.from('Gr\u00fc\u00dfe.', 'latin1'));
    await bench.write('1/2/3/4/5/deep.md', 'Fine.');
    await bench.write('1/2/3/4/5/6/deeper.md', 'x');
    await mkdir(join(bench.root, 'folder.md'));
    bench.register();
    expect(await names(bench)).toEqual(['1:2:3:4:5:deep', 'good', 'latin']);
    expect(codes(bench).toSorted()).toEqual(['binary', 'not-utf8', 'too-deep', 'too-large']);
  });

  it('a folder that is not there is a problem, unless it may come', async () => {
    await using bench = await benchFolder();
    bench.register({ id: 'a', folder: join(bench.root, 'none') });
    bench.register({ id: 'b', folder: join(bench.root, 'none'), optional: true });
    await bench.write('file', 'x');
    bench.register({ id: 'c', folder: join(bench.root, 'file'), optional: true });
    expect(await names(bench)).toEqual([]);
    // Each is told when it is known.
    const problems = bench.problems.map(({ source, code }) => `${source}: ${code}`);
    expect(problems.toSorted()).toEqual(['a: not-found', 'c: not-found']);
    await bench.write('none/x.md', 'Now.');
    expect(await bench.text('/x')).toBe('Now.');
  });
});

describe('the usual folders', () => {
  it('are those of each tool, in the project up to its repository and of the user', async () => {
    const root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-usual-')));
    try {
      const home = join(root, 'home');
      const cwd = join(home, 'work/repo/packages/a');
      await mkdir(join(home, 'work/repo/.git'), { recursive: true });
      await mkdir(cwd, { recursive: true });
      const { project, user } = await defaultCommandFolders({ cwd, home });
      const shown = (base: string, found: typeof project) =>
        found.map(({ folder, dialect }) => `${folder.slice(base.length + 1)} (${dialect})`);
      const tools = [
        '.agents/commands (patchbay)',
        '.claude/commands (claude)',
        '.opencode/commands (opencode)',
        '.opencode/command (opencode)',
        '.cursor/commands (cursor)',
      ];
      expect(shown(join(home, 'work/repo'), project)).toEqual([
        ...tools.map((tool) => `packages/a/${tool}`),
        ...tools.map((tool) => `packages/${tool}`),
        ...tools,
      ]);
      expect(shown(home, user)).toEqual([
        '.agents/commands (patchbay)',
        '.claude/commands (claude)',
        '.config/opencode/commands (opencode)',
        '.config/opencode/command (opencode)',
        '.cursor/commands (cursor)',
        '.codex/prompts (codex)',
      ]);
      expect((await defaultCommandFolders({ cwd, home: false })).user).toEqual([]);
      const atHome = await defaultCommandFolders({ cwd: home, home });
      expect(shown(home, atHome.project)).toEqual([
        '.opencode/commands (opencode)',
        '.opencode/command (opencode)',
      ]);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  });

  it.each([
    ['.claude/commands', '$0', 'a'],
    ['.config/opencode/command', '$1', 'a b'],
    ['.codex/prompts', '$1', 'a'],
    ['.claude/worktrees/x/.opencode/commands', '$1', 'a b'],
    ['.cursor/commands', '$1', '$1\n\na b'],
    ['commands', '$1', 'a b'],
  ])('say by their name whose files are in %s', async (folder, template, expected) => {
    await using bench = await benchFolder();
    await bench.write(join(folder, 'x.md'), template);
    bench.register({ folder: join(bench.root, folder) });
    expect(await bench.text('/x a b')).toBe(expected);
  });
});

it('a file that changed within one tick of the clock is read again', async () => {
  await using bench = await benchFolder();
  bench.register();
  for (let i = 0; i < 50; i++) {
    await writeFile(join(bench.root, 'x.md'), `Text ${String(i).padStart(2, '0')}`);
    expect(await bench.text('/x')).toBe(`Text ${String(i).padStart(2, '0')}`);
  }
});

it('an entry stays the same object while its file is the same', async () => {
  await using bench = await benchFolder();
  await bench.write('x.md', 'Text.');
  const source = markdownCommands({ id: 'c', folder: bench.root });
  const [before] = await source.listCommands(testContext());
  const [after] = await source.listCommands(testContext());
  expect(after).toBe(before);
});
