import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { markdownCommands, type CommandDialect } from '@patchbay/commands';
import type { Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let root: string;
let registry: ExtensionRegistry;
let problems: Problem[];

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-commands-')));
  problems = [];
  registry = new ExtensionRegistry({ onProblem: (problem) => void problems.push(problem) });
});
afterEach(async () => {
  await registry.close();
  await rm(root, { recursive: true, force: true });
});

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

describe('substitution', () => {
  const cases: readonly [string, CommandDialect, string, string, string][] = [
    ['all arguments as typed', 'claude', 'Fix $ARGUMENTS.', '"a b" c', 'Fix "a b" c.'],
    ['from 0', 'claude', '$0|$1|$2', '"a b" c', 'a b|c|$2'],
    ['by index', 'claude', '$ARGUMENTS[1]', 'x y', 'y'],
    ['escaped', 'claude', String.raw`costs \$1 and $0`, '5', 'costs $1 and 5'],
    ['added behind', 'claude', 'Review.', 'src', 'Review.\n\nARGUMENTS: src'],
    ['from 1 where 0 never occurs', 'claude', 'PR $1', '7', 'PR 7'],
    ['the last takes the rest', 'opencode', '$1: $2', 'a focus on b', 'a: focus on b'],
    ['missing is empty', 'opencode', '[$1][$2]', 'a', '[a][]'],
    ['ten', 'opencode', '$10', '1 2 3 4 5 6 7 8 9 X', 'X'],
    ['$$ stays', 'codex', '$$ $1', 'a', '$$ a'],
    ['named', 'codex', 'on $BRANCH', 'BRANCH=main', 'on main'],
    ['nothing added', 'codex', 'Review.', 'src', 'Review.'],
    ['no placeholders', 'cursor', 'cost $1', 'src', 'cost $1\n\nsrc'],
    ['a placeholder in a value', 'claude', '$0 $1', '$1 b', '$1 b'],
    ['a pattern in a value', 'claude', 'x $ARGUMENTS y', '$& $1 $$', 'x $& $1 $$ y'],
    ['a command in a value', 'opencode', 'Look: $ARGUMENTS', '!`rm -rf x`', 'Look: !`rm -rf x`'],
    ['an apostrophe', 'claude', '$0 $1', "don't stop", "don't stop"],
    ['nothing typed', 'claude', "awk '{print $1}' costs $5", '', "awk '{print $1}' costs $5"],
    ['our own', 'patchbay', 'Do $1 with $2', 'a b c', 'Do a with b c'],
  ];
  it.each(cases)('%s (%s)', async (_name, dialect, template, typed, expected) => {
    await write('x.md', template);
    registry.register(markdownCommands({ id: 'c', folder: root, dialect }));
    const resolved = await registry.view().commands.resolve(`/x ${typed}`);
    expect(resolved).toMatchObject({ ok: true, content: [{ type: 'text', text: expected }] });
  });

  it('takes declared names', async () => {
    await write('fix.md', '---\narguments: [issue, branch]\n---\n$issue on $branch, $other');
    registry.register(markdownCommands({ id: 'c', folder: root, dialect: 'claude' }));
    const { commands } = registry.view();
    expect(await commands.resolve('/fix 42 hot')).toMatchObject({
      content: [{ text: '42 on hot, $other' }],
    });
    expect(await commands.resolve('/fix branch=hot issue=7')).toMatchObject({
      content: [{ text: '7 on hot, $other' }],
    });
  });
});

describe('a folder of command files', () => {
  it('is listed with namespaces, descriptions and hints, and seen anew', async () => {
    await write(
      '.claude/commands/review.md',
      '---\ndescription: Reviews.\nargument-hint: [file] [depth]\n---\nReview $0.',
    );
    await write('.claude/commands/git/commit.md', '# Commit\n\nCommits what is staged.\n');
    await write('.claude/commands/notes.txt', 'no command');
    registry.register(markdownCommands({ id: 'project', folder: join(root, '.claude/commands') }));
    const { commands } = registry.view();
    expect(
      (await commands.list()).map(({ name, description, hint }) => [name, description, hint]),
    ).toEqual([
      ['git:commit', 'Commits what is staged.', undefined],
      ['review', 'Reviews.', '[file] [depth]'],
    ]);
    expect(problems.map(({ code }) => code)).toEqual(['invalid-yaml', 'quoted-value']);
    await write('.claude/commands/review.md', 'Look at $0.');
    expect(await commands.resolve('/review x')).toMatchObject({
      content: [{ text: 'Look at x.' }],
    });
    await rm(join(root, '.claude/commands/review.md'));
    expect(await commands.resolve('/review x')).toMatchObject({
      ok: false,
      code: 'command-unknown',
    });
  });

  it('runs nothing, and says what it did not do', async () => {
    await write('.claude/commands/x.md', 'Status: !`git status`\n\n$1');
    registry.register(markdownCommands({ id: 'c', folder: join(root, '.claude/commands') }));
    const { commands } = registry.view();
    expect(await commands.resolve('/x y')).toMatchObject({
      content: [{ text: 'Status: !`git status`\n\ny' }],
    });
    expect(problems.map(({ code }) => code)).toEqual([
      'shell-injection-ignored',
      'positional-base-guessed',
    ]);
  });

  it('lists the good ones beside a broken one, and a missing folder is a problem', async () => {
    await write('good.md', 'Fine.');
    await write('bad.md', 'a\0b');
    registry.register(markdownCommands({ id: 'c', folder: root }));
    registry.register(markdownCommands({ id: 'none', folder: join(root, 'missing') }));
    expect((await registry.view().commands.list()).map(({ name }) => name)).toEqual(['good']);
    expect(new Set(problems.map(({ source, code }) => `${source} ${code}`))).toEqual(
      new Set(['c binary', 'none not-found']),
    );
  });

  it('sees an edit also while somebody listens to changes', async () => {
    await write('first.md', 'One.');
    registry.register(markdownCommands({ id: 'c', folder: root }));
    const view = registry.view();
    const stop = new AbortController();
    const next = view.changes({ signal: stop.signal })[Symbol.asyncIterator]().next();
    await view.compile();
    expect((await view.commands.list()).map(({ name }) => name)).toEqual(['first']);
    await write('second.md', 'Two.');
    expect((await view.commands.list()).map(({ name }) => name)).toEqual(['first', 'second']);
    stop.abort();
    await next.catch(() => undefined);
  });
});
