import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';

import { expect, it } from 'vitest';

import { Project, skillText, watches } from './project.ts';

it('loses none of 1,000 edits, one after the other', async () => {
  await using project = await Project.make();
  for (let i = 0; i < 20; i++) await project.skill(`s${i}`, 'first');
  await project.watch({ debounceMs: 10 });
  for (let i = 0; i < 1_000; i++) {
    const name = `s${i % 20}`;
    if (i % 3 === 0) await project.replace(name, `edit ${i}`);
    else await project.write(`${name}/SKILL.md`, skillText(name, `edit ${i}`));
    do await project.event();
    while ((await project.list())[name] !== `edit ${i}`);
  }
});

it('loses none of 1,000 edits in one go: the last of each skill is there in the end', async () => {
  await using project = await Project.make();
  for (let i = 0; i < 100; i++) await project.skill(`s${i}`, 'first');
  await project.watch({ debounceMs: 50 });
  await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      for (let edit = 1; edit <= 10; edit++)
        await project.write(`s${i}/SKILL.md`, skillText(`s${i}`, `edit ${edit}`));
    }),
  );
  await project.until(
    Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`s${i}`, 'edit 10'])),
  );
});

it('a git checkout that changes 500 skills is one batch', async () => {
  await using project = await Project.make();
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: project.at('~p'),
      stdio: 'pipe',
    });
  const all = (text: string) =>
    Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`s${i}`, text]));
  const write = async (text: string) => {
    for (let i = 0; i < 500; i++) await project.skill(`s${i}`, text);
    git('add', '-A');
    git('commit', '-qm', text);
  };
  git('init', '-q', '-b', 'one');
  await write('one');
  git('checkout', '-qb', 'two');
  await write('two');
  git('checkout', '-q', 'one');
  await project.watch();
  for (const branch of ['two', 'one', 'two']) {
    git('checkout', '-q', branch);
    expect(await project.until(all(branch))).toEqual([undefined]);
  }
});

it('holds no more handles after 300 turns of skills, folders and listeners', async () => {
  await using project = await Project.make();
  await project.skill('kept');
  await project.watch({ debounceMs: 5 });
  const handles = () => readdirSync('/proc/self/fd').length;
  const before = handles();
  for (let i = 0; i < 300; i++) {
    await project.skill('passing', `turn ${i}`);
    await project.until({ kept: 'one', passing: `turn ${i}` });
    await project.remove('passing');
    await project.until({ kept: 'one' });
    if (i % 50 !== 0) continue;
    await project.remove('');
    await project.until({});
    await mkdir(project.root);
    await project.skill('kept');
    await project.until({ kept: 'one' });
  }
  expect(handles()).toBeLessThanOrEqual(before + 1);
  expect(watches()).toBe(3);
});
