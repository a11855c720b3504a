import { execFileSync } from 'node:child_process';
import {
  mkdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';

import type { CompiledView, ExtensionView } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills, type LocalSkillsOptions } from '@patchbay/skills/node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import {
  benchFolder,
  callTool,
  catalogue,
  fixture,
  loneContext,
  type BenchFolder,
} from './bench-folder.ts';

let bench: BenchFolder;
let registry: ExtensionRegistry;

beforeEach(async () => {
  bench = await benchFolder();
  registry = new ExtensionRegistry({ onProblem: () => undefined });
});
afterEach(async () => {
  await registry.close();
  await bench.remove();
});

function plug(options: Partial<LocalSkillsOptions> = {}): ExtensionView {
  registry.register(localSkills({ id: 'mine', folder: bench.root, ...options }));
  registry.register(new SkillManagerCapability());
  return registry.view({ session: 's' });
}
/** Builds the layout of a public report. */
const setUp = (key: string) =>
  execFileSync(process.execPath, [join(fixture(key), 'setup.mjs'), bench.root]);
const names = ({ skills }: CompiledView) => skills.map(({ name }) => name);
const problemsOf = ({ problems }: CompiledView, code: string) =>
  problems.filter((problem) => problem.code === code).map(({ file }) => file);

describe('links', () => {
  it('maka-4096: linked folders and a linked SKILL.md load; what leads nowhere is said', async () => {
    setUp('maka-4096');
    const view = plug({ folder: join(bench.root, 'root') });
    const before = await view.compile();
    expect(names(before)).toEqual(['dirlink', 'filelink', 'inner', 'real']);
    const at = (name: string) => join(bench.root, 'root', name);
    expect(problemsOf(before, 'dangling-link')).toEqual([at('dangling')]);
    expect(problemsOf(before, 'not-a-folder')).toEqual([at('link-to-file')]);
    expect(problemsOf(before, 'skill-duplicate')).toEqual([at('dirlink-again/SKILL.md')]);

    await writeFile(
      join(bench.root, 'shared/dirlink/SKILL.md'),
      '---\nname: dirlink\ndescription: Edited.\n---\n',
    );
    expect((await catalogue(view)).get('dirlink')).toBe('Edited.');
    await rm(at('dirlink-again'));
    await rm(at('dirlink'));
    await bench.skill('elsewhere/other');
    await symlink(join(bench.root, 'elsewhere/other'), at('dirlink'));
    expect(names(await view.compile())).toEqual(['filelink', 'inner', 'other', 'real']);
  });

  it('maka-4096: where links are not allowed, each one is said', async () => {
    setUp('maka-4096');
    const view = plug({ folder: join(bench.root, 'root'), followLinks: false });
    const compiled = await view.compile();
    expect(names(compiled)).toEqual(['real']);
    const at = (name: string) => join(bench.root, 'root', name);
    expect(new Set(problemsOf(compiled, 'link-refused'))).toEqual(
      new Set(['dirlink', 'dirlink-again', 'filelink', 'rootlink'].map(at)),
    );
    expect(problemsOf(compiled, 'dangling-link')).toEqual([at('dangling')]);
    expect(problemsOf(compiled, 'not-a-folder')).toEqual([at('link-to-file')]);
  });

  it('kirocrew-4777: a skill reads below its own real folder and nowhere else', async () => {
    setUp('kirocrew-4777');
    await symlink(join(bench.root, 'outside'), join(bench.root, 'root/linked'));
    const view = plug({ folder: join(bench.root, 'root') });
    expect(names(await view.compile())).toEqual(['ok', 'ok-evil', 'outside']);
    const read = (path: string, name = 'ok') => callTool(view, 'read_skill_file', { name, path });
    for (const path of ['refs/good.md', 'inner-link.md'])
      expect((await read(path)).text).toBe('good');
    for (const path of [
      '../secret.txt',
      '..%2fsecret.txt',
      '/etc/hostname',
      'a/../../secret.txt',
      '..\\secret.txt',
      'link.txt',
      'linkdir/secret.txt',
      'file:///etc/hostname',
      'good\0.md',
      '',
      '.',
      '../ok-evil/secret.txt',
    ]) {
      const { text, isError } = await read(path);
      expect([path, isError, text.includes('TOP-SECRET')]).toEqual([path, true, false]);
    }
    expect((await read('../secret.txt', 'outside')).isError).toBe(true);
    expect((await read('SKILL.md', 'outside')).text).toContain('name: outside');
    for (const name of ['../outside', `${bench.root}/outside`, 'ok/../../outside', 'C:\\x']) {
      const { text, isError } = await callTool(view, 'activate_skill', { name });
      expect([isError, text]).toEqual([true, expect.stringContaining('There is no skill')]);
    }
  });

  it('a SKILL.md that is a link to something else brings nothing along', async () => {
    await bench.write('home/.secret', 'secret');
    await bench.write('home/profile', '---\nname: x\ndescription: y\n---\n');
    await mkdir(join(bench.root, 'root/x'), { recursive: true });
    await symlink(join(bench.root, 'home/profile'), join(bench.root, 'root/x/SKILL.md'));
    const compiled = await plug({ folder: join(bench.root, 'root') }).compile();
    expect(names(compiled)).toEqual([]);
    expect(problemsOf(compiled, 'link-refused')).toEqual([join(bench.root, 'root/x/SKILL.md')]);
  });

  it('are looked at once, whatever loops there are, and own folders come first', async () => {
    await bench.skill('z/deep/skill');
    await symlink(bench.root, join(bench.root, 'z/deep/up'));
    await symlink('z', join(bench.root, 'a'));
    await symlink('loop', join(bench.root, 'loop'));
    const compiled = await plug().compile();
    expect(compiled.skills.map(({ origin }) => origin)).toEqual([join(bench.root, 'z/deep/skill')]);
    expect(problemsOf(compiled, 'dangling-link')).toEqual([join(bench.root, 'loop')]);
  });
});

describe('which folders are looked into', () => {
  it('claude-code-16983: any case of SKILL.md, the exact one first; no hidden folders; no other file', async () => {
    setUp('claude-code-16983');
    const view = plug({ folder: join(bench.root, 'root') });
    const compiled = await view.compile();
    expect(names(compiled)).toEqual(['both', 'lower', 'mixed', 'refs']);
    expect((await catalogue(view)).get('both')).toBe('right one');
    expect(problemsOf(compiled, 'file-name-case')).toEqual([
      join(bench.root, 'root/lower/skill.md'),
      join(bench.root, 'root/mixed/Skill.md'),
    ]);
    const wrong = await callTool(view, 'read_skill_file', { name: 'refs', path: 'FORMS.md' });
    expect(wrong).toMatchObject({ isError: true, text: expect.stringContaining('forms.md') });
  });

  it('zai-feedback-738: list, catalogue, tools and commands agree', async () => {
    setUp('zai-feedback-738');
    const view = plug({ folder: join(bench.root, 'root') });
    const expected = ['deep', 'flat', 'mine:tdd', 'parent', 'tdd'];
    expect([...(await catalogue(view)).keys()]).toEqual(expected);
    expect((await view.commands.list()).map(({ name }) => name)).toEqual(expected);
    const listed = (await callTool(view, 'list_skills', {})).text.split('\n');
    expect(listed.map((line) => /^- (.*?): /.exec(line)?.[1])).toEqual(expected);
    for (const name of expected)
      expect((await callTool(view, 'activate_skill', { name })).isError).toBe(false);
  });

  it('five levels, and says what is deeper', async () => {
    await bench.skill('1/2/3/4/five');
    await bench.skill('1/2/3/4/5/six');
    const compiled = await plug().compile();
    expect(names(compiled)).toEqual(['five']);
    expect(problemsOf(compiled, 'too-deep')).toEqual([bench.root]);
  });

  it('2,000 folders, and says that there are more', async () => {
    await Promise.all(
      Array.from({ length: 2_050 }, (_, i) =>
        mkdir(join(bench.root, `f${String(i).padStart(4, '0')}`)),
      ),
    );
    await bench.skill('f0001');
    await bench.skill('f2049');
    const compiled = await plug().compile();
    expect(names(compiled)).toEqual(['f0001']);
    expect(problemsOf(compiled, 'too-many-folders')).toHaveLength(1);
  });

  it('skills below a skill, where the source is told to, but not its material', async () => {
    await bench.skill('core');
    for (const path of ['live-queries', 'skills/inner', 'sub-skills/other', 'deep/too'])
      await bench.skill(`core/${path}`);
    for (const path of ['references/r', 'assets/a', 'scripts/s', 'examples/e', 'tests/t', 'test-x'])
      await bench.skill(`core/${path}`);
    expect(names(await plug({ nested: true }).compile())).toEqual([
      'core',
      'inner',
      'live-queries',
      'other',
    ]);
  });

  it('a folder that may come later is no problem', async () => {
    const view = plug({ folder: join(bench.root, 'later'), optional: true });
    expect((await view.compile()).problems).toEqual([]);
    await bench.skill('later/a');
    expect(names(await view.compile())).toEqual(['a']);
  });
});

describe('what changed', () => {
  it('is seen even if size and time of the file are the same', async () => {
    const text = (description: string) => `---\nname: a\ndescription: ${description}\n---\n`;
    await bench.write('a/SKILL.md', text('one'));
    const view = plug();
    const file = join(bench.root, 'a/SKILL.md');
    const then = new Date();
    for (const description of ['two', 'six', 'ten']) {
      await writeFile(file, text(description));
      await utimes(file, then, then);
      expect((await catalogue(view)).get('a')).toBe(description);
    }
  });

  it('is seen at the next compile also while somebody listens', async () => {
    await bench.skill('a');
    const view = plug();
    const listening = new AbortController();
    const heard = view.changes({ signal: listening.signal })[Symbol.asyncIterator]().next();
    expect(names(await view.compile())).toEqual(['a']);
    await bench.skill('b');
    expect(names(await view.compile())).toEqual(['a', 'b']);
    listening.abort();
    await heard;
  });

  it('is all that is new: other entries and the tools stay the same objects', async () => {
    await bench.skill('a');
    await bench.skill('b');
    const source = localSkills({ id: 'mine', folder: bench.root });
    const [a, b] = await source.listSkills(loneContext());
    const view = plug();
    const before = await view.compile();
    await bench.skill('b', 'license: MIT\n');
    const [sameA, otherB] = await source.listSkills(loneContext());
    expect(sameA).toBe(a);
    expect(otherB).not.toBe(b);
    const after = await view.compile();
    expect(after).not.toBe(before);
    for (const [i, { definition }] of after.tools.entries())
      expect(definition).toBe(before.tools[i]?.definition);
    expect(after.instructions[0]).toBe(before.instructions[0]);
  });

  it('is where a skill lies, if its folder is renamed and the link to it is led there', async () => {
    const [one, two, link] = ['one', 'two', 'link'].map((name) => join(bench.root, name));
    await bench.skill('one/x');
    await symlink(one!, link!);
    const source = localSkills({ id: 'mine', folder: link! });
    const { ctimeMs } = await stat(join(one!, 'x/SKILL.md'));
    // Until its time says that it did not change while it was read.
    while (Date.now() - ctimeMs < 100) await source.listSkills(loneContext());
    const [before] = await source.listSkills(loneContext());
    expect((await source.openSkill(before!.uri, loneContext()))?.folder).toBe(join(one!, 'x'));
    await rename(one!, two!);
    await rm(link!);
    await symlink(two!, link!);
    await source.listSkills(loneContext());
    expect((await source.openSkill(before!.uri, loneContext()))?.folder).toBe(join(two!, 'x'));
  });

  it('behind a link is seen when a skill is opened, without a listing in between', async () => {
    for (const version of ['one', 'two']) {
      const text = `---\nname: x\ndescription: d\n---\n${version}`;
      await bench.write(`${version}/x/SKILL.md`, text);
    }
    await mkdir(join(bench.root, 'root'));
    const link = join(bench.root, 'root/x');
    await symlink(join(bench.root, 'one/x'), link);
    const source = localSkills({ id: 'mine', folder: join(bench.root, 'root') });
    const body = async () => (await source.openSkill('skill://x/SKILL.md', loneContext()))?.body;
    expect(await body()).toBe('one');
    await rm(link);
    await symlink(join(bench.root, 'two/x'), link);
    expect(await body()).toBe('two');
    await rm(link);
    expect(await body()).toBeUndefined();
  });

  it('of two skills of one name gives the second its own URI back when the first goes', async () => {
    await bench.skill('one/tdd');
    await bench.skill('two/tdd');
    const source = localSkills({ id: 'mine', folder: bench.root });
    const uris = async () => (await source.listSkills(loneContext())).map(({ uri }) => uri);
    expect(await uris()).toEqual(['skill://tdd/SKILL.md', 'skill://two/tdd/SKILL.md']);
    const [, second] = await source.listSkills(loneContext());
    expect((await source.listSkills(loneContext()))[1]).toBe(second);
    expect((await source.openSkill(second!.uri, loneContext()))?.entry.uri).toBe(second!.uri);
    await rm(join(bench.root, 'one'), { recursive: true });
    expect(await uris()).toEqual(['skill://tdd/SKILL.md']);
  });

  it('is seen by everyone who asks after it was written, however many ask at once', async () => {
    const source = localSkills({ id: 'mine', folder: bench.root });
    await bench.skill('a');
    const early = source.skillExists('skill://b/SKILL.md', loneContext());
    await bench.skill('b');
    const late = Array.from({ length: 50 }, () =>
      source.skillExists('skill://b/SKILL.md', loneContext()),
    );
    expect(new Set(await Promise.all(late))).toEqual(new Set([true]));
    await early;
  });

  it('graphpilot-31: a SKILL.md replaced 1,000 times while it is read is never seen half', async () => {
    const text = (i: number) =>
      `---\nname: demo\ndescription: Version ${i}.\n---\n${`${i} `.repeat(6_000)}end`;
    await bench.write('demo/SKILL.md', text(0));
    const view = plug();
    await view.compile();
    const written = new AbortController();
    const writing = (async () => {
      for (let i = 1; i <= 1_000; i++) {
        await bench.write('demo/SKILL.md.tmp', text(i));
        await rename(join(bench.root, 'demo/SKILL.md.tmp'), join(bench.root, 'demo/SKILL.md'));
      }
      written.abort();
    })();
    const seen = new Set<number>();
    while (!written.signal.aborted) {
      const [entry] = (await view.compile()).skills;
      expect(entry?.description).toMatch(/^Version \d+\.$/);
      const [content] = await view.resources.read('skill://demo/SKILL.md');
      const body = (content as { readonly text: string }).text;
      const i = Number(/^\d+/.exec(body)?.[0]);
      expect(body === text(i).split('---\n')[2]).toBe(true);
      seen.add(i);
    }
    await writing;
    expect(seen.size).toBeGreaterThan(10);
    expect((await view.compile()).skills.map(({ description }) => description)).toEqual([
      'Version 1000.',
    ]);
  });

  it('graphpilot-31: backups and temporary files of editors are no skills', async () => {
    await bench.skill('demo');
    for (const name of ['SKILL.md~', 'SKILL.md.tmp', '.SKILL.md.swp', '#SKILL.md#'])
      await bench.write(`other/${name}`, await readFile(join(bench.root, 'demo/SKILL.md'), 'utf8'));
    expect(names(await plug().compile())).toEqual(['demo']);
  });
});

describe('large and long files', () => {
  it('agent-os-357: a SKILL.md of 200 MB is refused unread, and of 1,000 resources 50 are listed', async () => {
    await bench.skill('huge');
    await truncate(join(bench.root, 'huge/SKILL.md'), 200 * 1024 * 1024);
    await bench.skill('many');
    await mkdir(join(bench.root, 'many/assets'));
    await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => bench.write(`many/assets/${i}.txt`, 'x')),
    );
    await bench.write('many/assets/large.bin', '');
    await truncate(join(bench.root, 'many/assets/large.bin'), 200 * 1024 * 1024);
    const view = plug();
    const compiled = await view.compile();
    expect(names(compiled)).toEqual(['many']);
    expect(problemsOf(compiled, 'file-too-large')).toEqual([join(bench.root, 'huge/SKILL.md')]);
    const { text } = await callTool(view, 'activate_skill', { name: 'many' });
    expect(text.match(/assets\/\d+\.txt/g)).toHaveLength(50);
    const read = { name: 'many', path: 'assets/large.bin' };
    expect((await callTool(view, 'read_skill_file', read)).isError).toBe(true);
  });

  it('are read only as far as their metadata goes, without a fault in a cut character', async () => {
    const body = 'ä'.repeat(40_000);
    await bench.write('a/SKILL.md', `---\nname: a\ndescription: Ü.\n---\nx${body}`);
    await bench.write('b/SKILL.md', `---\nname: b\ndescription: Ü.\n---\nxx${body}`);
    const view = plug();
    expect((await view.compile()).problems).toEqual([]);
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain(body);
  });

  it('yield a description behind 60 kB of other metadata, and in a code fence', async () => {
    const other = Array.from({ length: 900 }, (_, i) => `  key-${i}: ${'x'.repeat(50)}\n`).join('');
    await bench.write('a/SKILL.md', `---\nname: a\nmetadata:\n${other}description: Far.\n---\n`);
    await bench.write(
      'b/SKILL.md',
      `\`\`\`md\n---\nname: b\ndescription: Wrapped.\n---\n${'text\n'.repeat(9_000)}\`\`\`\n`,
    );
    const found = await catalogue(plug());
    expect([...found]).toEqual([
      ['a', 'Far.'],
      ['b', 'Wrapped.'],
    ]);
  });

  it('are left out above 1 MiB, with a problem', async () => {
    await bench.write(
      'a/SKILL.md',
      `---\nname: a\ndescription: d\n---\n${'x'.repeat(1024 * 1024)}`,
    );
    const compiled = await plug().compile();
    expect(compiled.skills).toEqual([]);
    expect(problemsOf(compiled, 'file-too-large')).toEqual([join(bench.root, 'a/SKILL.md')]);
  });
});

describe('strict validation', () => {
  const good = '---\nname: good\ndescription: d\nlicense: MIT\nallowed-tools: Read\n---\n';
  it.each([
    ['good', good, undefined],
    ['имя', '---\nname: имя\ndescription: d\n---\n', undefined],
    [
      'unknown',
      good.replaceAll('good', 'unknown').replace('license', 'version'),
      'unknown field "version"',
    ],
    ['Upper', good.replaceAll('good', 'Upper'), 'lower-case'],
    ['a--b', good.replaceAll('good', 'a--b'), 'lower-case'],
    ['folder', good, 'that of its folder'],
    ['x'.repeat(65), good.replaceAll('good', 'x'.repeat(65)), '64'],
    ['nameless', '---\ndescription: d\n---\n', 'no name'],
    ['empty', '---\nname: empty\ndescription: ""\n---\n', 'no description'],
    ['long', `---\nname: long\ndescription: ${'😀'.repeat(1025)}\n---\n`, '1024'],
    ['fits', `---\nname: fits\ndescription: ${'😀'.repeat(1024)}\n---\n`, undefined],
    ['colon', '---\nname: colon\ndescription: a: b\n---\n', 'invalid-yaml'],
    ['early', `\n${good.replaceAll('good', 'early')}`, 'text-before-frontmatter'],
    [
      'compat',
      `---\nname: compat\ndescription: d\ncompatibility: ${'x'.repeat(501)}\n---\n`,
      '500',
    ],
  ])('%s', async (folder, text, fault) => {
    await bench.write(`${folder}/SKILL.md`, text);
    const { skills, problems } = await plug({ validate: 'strict' }).compile();
    expect(skills.map(({ origin }) => origin)).toEqual(
      fault === undefined ? [join(bench.root, folder)] : [],
    );
    expect(problems.map(({ code, message }) => [code, message])).toEqual(
      fault === undefined ? [] : [['skill-invalid', expect.stringContaining(fault)]],
    );
  });
});
