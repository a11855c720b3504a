import { mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import type { ChangeEvent } from '@patchbay/protocols';
import { expect, it } from 'vitest';

import { benchFolder, type BenchFolder } from './bench-folder.ts';

/** A view that has looked and then listens: what it hears next, and the names of its commands. */
async function listener(bench: BenchFolder) {
  const view = bench.registry.view({ session: 'listens' });
  await view.commands.list();
  const stop = new AbortController();
  const events = view.changes({ signal: stop.signal })[Symbol.asyncIterator]();
  return {
    view,
    /** The next change of commands. */
    next: async (): Promise<ChangeEvent> => {
      for (;;) {
        const { value, done } = await events.next();
        if (done === true) throw new Error('The changes ended.');
        if (value.kind === 'commands_changed') return value;
      }
    },
    names: async () => (await view.commands.list()).map(({ name }) => name),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await events.return?.();
      await view.close();
    },
  };
}

it('edits, new files, renamed folders and removals are told, and seen at the next list', async () => {
  await using bench = await benchFolder();
  const file = join(bench.root, 'a.md');
  await writeFile(file, 'One.');
  bench.register();
  await using listening = await listener(bench);
  const { names, next, view } = listening;
  expect(await names()).toEqual(['a']);
  const steps: readonly [() => Promise<unknown>, readonly string[]][] = [
    [() => writeFile(file, 'Two.'), ['a']],
    [() => bench.write('git/commit.md', 'Commit.'), ['a', 'git:commit']],
    [() => rename(join(bench.root, 'git'), join(bench.root, 'vcs')), ['a', 'vcs:commit']],
    [() => unlink(file), ['vcs:commit']],
    [() => rm(join(bench.root, 'vcs'), { recursive: true }), []],
  ];
  for (const [change, expected] of steps) {
    await change();
    const event = await next();
    expect(event).toMatchObject({ capability: 'mine', kind: 'commands_changed' });
    expect(event.sourceUri).toMatch(pathToFileURL(bench.root).href);
    expect(await names()).toEqual(expected);
    // A file that has another name is two changes: one came, one went.
    if (expected.includes('vcs:commit') && expected.length === 2) await next();
  }
  expect(await view.commands.resolve('/a')).toMatchObject({ ok: false, code: 'command-unknown' });
});

it('a folder that comes later, and a link that is led elsewhere, are told', async () => {
  await using bench = await benchFolder();
  const folder = join(bench.root, 'project/.claude/commands');
  bench.register({ folder, optional: true });
  await using listening = await listener(bench);
  const { names, next } = listening;
  expect(await names()).toEqual([]);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'a.md'), 'One.');
  await next();
  expect(await names()).toEqual(['a']);

  await bench.write('team/one/b.md', 'b');
  await bench.write('team/two/c.md', 'c');
  await symlink(join(bench.root, 'team/one'), join(folder, 'team'));
  await next();
  expect(await names()).toEqual(['a', 'team:b']);
  await unlink(join(folder, 'team'));
  await symlink(join(bench.root, 'team/two'), join(folder, 'team'));
  await next();
  expect(await names()).toEqual(['a', 'team:c']);
});

it('a repaired file loses its problem, a broken one gets one', async () => {
  await using bench = await benchFolder();
  await bench.write('a.md', '---\ndescription: a: b\n---\nOne.');
  bench.register();
  await using listening = await listener(bench);
  const { names, next, view } = listening;
  expect(bench.problems.map(({ code }) => code)).toEqual(['invalid-yaml', 'quoted-value']);
  await bench.write('a.md', '---\ndescription: a b\n---\nTwo.');
  await next();
  expect(await view.commands.list()).toMatchObject([{ name: 'a', description: 'a b' }]);
  await bench.write('a.md', 'a\0b');
  await next();
  expect(await names()).toEqual([]);
  expect(bench.problems.map(({ code }) => code)).toEqual([
    'invalid-yaml',
    'quoted-value',
    'binary',
  ]);
});
