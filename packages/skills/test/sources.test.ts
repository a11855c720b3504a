import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { ExtensionRegistry } from '@patchbay/registry';
import { memorySkills, SkillManagerCapability } from '@patchbay/skills';
import {
  defaultSkillFolders,
  localSkills,
  packageSkills,
  type PackageSkillsOptions,
} from '@patchbay/skills/node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { benchFolder, callTool, type BenchFolder } from './bench-folder.ts';

let bench: BenchFolder;
beforeEach(async () => {
  bench = await benchFolder();
});
afterEach(() => bench.remove());

describe('the usual folders', () => {
  it('reach from the working directory up to the root of the repository, the nearest first', async () => {
    const repository = join(bench.root, 'repo');
    const cwd = join(repository, 'packages/a');
    await mkdir(cwd, { recursive: true });
    await mkdir(join(repository, '.git'));
    const { project, user } = await defaultSkillFolders({
      cwd,
      home: join(bench.root, 'home'),
      conventions: ['agents', 'claude'],
    });
    expect(project).toEqual(
      [cwd, join(repository, 'packages'), repository].flatMap((base) => [
        join(base, '.agents/skills'),
        join(base, '.claude/skills'),
      ]),
    );
    expect(user).toEqual([
      join(bench.root, 'home/.agents/skills'),
      join(bench.root, 'home/.claude/skills'),
    ]);
  });

  it('are those of the working directory alone without a repository', async () => {
    const { project, user } = await defaultSkillFolders({ cwd: bench.root, home: false });
    const places = [
      '.agents/skills',
      '.claude/skills',
      '.opencode/skills',
      '.opencode/skill',
      '.github/skills',
    ];
    expect(project).toEqual(places.map((place) => join(bench.root, place)));
    expect(user).toEqual([]);
  });

  it('give the project before the user, and what both reach only once', async () => {
    const home = join(bench.root, 'home');
    await mkdir(join(home, '.git'), { recursive: true });
    await mkdir(join(home, 'work'));
    const { project, user } = await defaultSkillFolders({ cwd: join(home, 'work'), home });
    expect(project.filter((folder) => user.includes(folder))).toEqual([]);
    await bench.skill('home/.agents/skills/a', '', 'of the user');
    await bench.skill('home/work/.claude/skills/a', '', 'of the project');
    await using registry = new ExtensionRegistry({ onProblem: () => undefined });
    registry.register(localSkills({ id: 'project', folder: project, optional: true }));
    registry.register(localSkills({ id: 'user', folder: user, precedence: 20, optional: true }));
    registry.register(new SkillManagerCapability());
    const view = registry.view({ session: 's' });
    expect((await view.compile()).problems.map(({ code }) => code)).toEqual(['skill-shadowed']);
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain(
      'of the project',
    );
    expect((await callTool(view, 'activate_skill', { name: 'user:a' })).text).toContain(
      'of the user',
    );
  });

  it('of two folders of one source the first wins a name', async () => {
    await bench.skill('z/a', '', 'first');
    await bench.skill('b/a', '', 'second');
    await using registry = new ExtensionRegistry({ onProblem: () => undefined });
    const folder = ['z', 'b'].map((name) => join(bench.root, name));
    registry.register(localSkills({ id: 'mine', folder }));
    registry.register(new SkillManagerCapability());
    const view = registry.view({ session: 's' });
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain('first');
    expect((await callTool(view, 'activate_skill', { name: 'mine:a' })).text).toContain('second');
  });
});

describe('skills of packages', () => {
  const compile = async (packages: readonly string[], more: Partial<PackageSkillsOptions> = {}) => {
    await using registry = new ExtensionRegistry({ onProblem: () => undefined });
    registry.register(
      packageSkills({ id: 'packages', packages, from: join(bench.root, 'app/src'), ...more }),
    );
    return await registry.view().compile();
  };
  const install = async (name: string, manifest: object = {}) => {
    const text = JSON.stringify({ name, exports: {}, ...manifest });
    await bench.write(`app/node_modules/${name}/package.json`, text);
  };

  it('are found as Node finds the package, nested ones too, and only in packages that are named', async () => {
    await install('@acme/db');
    await install('other');
    await bench.skill('app/node_modules/@acme/db/skills/db-core');
    await bench.skill('app/node_modules/@acme/db/skills/db-core/live-queries');
    await bench.skill('app/node_modules/@acme/db/skills/db-core/references/template');
    await bench.skill('app/node_modules/@acme/db/.claude/skills/hidden');
    await bench.skill('app/node_modules/other/skills/unasked');
    const { skills, problems } = await compile(['@acme/db']);
    expect(skills.map(({ name, origin, precedence }) => [name, origin, precedence])).toEqual([
      ['db-core', 'npm:@acme/db', 10],
      ['hidden', 'npm:@acme/db', 10],
      ['live-queries', 'npm:@acme/db', 10],
    ]);
    expect(problems).toEqual([]);
  });

  it('may be the package itself', async () => {
    await install('one');
    await bench.write('app/node_modules/one/SKILL.md', '---\nname: one\ndescription: d\n---\n');
    await bench.skill('app/node_modules/one/skills/two');
    const { skills, problems } = await compile(['one']);
    expect(skills.map(({ name }) => name)).toEqual(['one', 'two']);
    expect(problems).toEqual([]);
  });

  it('that are not there, or are no names of packages, are problems', async () => {
    await install('empty');
    const { skills, problems } = await compile(['missing', 'empty', '../..', '/etc', '.', 'a/b']);
    expect(skills).toEqual([]);
    expect(problems.map(({ code }) => code)).toEqual([
      'not-found',
      'not-found',
      'invalid-config',
      'invalid-config',
      'invalid-config',
      'invalid-config',
    ]);
  });

  it('read nothing outside of their package, and are not always active because they say so', async () => {
    await install('bad');
    await bench.skill('elsewhere/secret');
    await bench.skill('app/node_modules/bad/skills/keen', 'always_active: true\n');
    const at = (path: string) => join(bench.root, 'app/node_modules/bad', path);
    await symlink(join(bench.root, 'elsewhere'), at('skills/out'));
    await mkdir(at('.claude'));
    await symlink(join(bench.root, 'elsewhere'), at('.claude/skills'));
    const { skills, problems } = await compile(['bad']);
    expect(skills.map(({ name, alwaysActive }) => [name, alwaysActive])).toEqual([
      ['keen', undefined],
    ]);
    expect(problems.map(({ code }) => code).toSorted()).toEqual([
      'always-active-refused',
      'link-refused',
      'link-refused',
    ]);
    const trusted = await compile(['bad'], { trusted: true });
    expect(trusted.skills.map(({ alwaysActive }) => alwaysActive)).toEqual([true]);
  });

  it('work through the links of a package manager', async () => {
    await bench.skill('store/linked@1/node_modules/linked/skills/a');
    await writeFile(join(bench.root, 'store/linked@1/node_modules/linked/package.json'), '{}');
    await mkdir(join(bench.root, 'app/node_modules'), { recursive: true });
    await symlink(
      join(bench.root, 'store/linked@1/node_modules/linked'),
      join(bench.root, 'app/node_modules/linked'),
    );
    const { skills, problems } = await compile(['linked']);
    expect([skills.map(({ name }) => name), problems]).toEqual([['a'], []]);
  });
});

describe('skills of a program', () => {
  it('are skills like any other', async () => {
    await using registry = new ExtensionRegistry({ onProblem: () => undefined });
    registry.register(
      memorySkills({
        id: 'made',
        skills: [
          { name: 'a', description: 'A.', body: 'Do a.', files: { 'refs/x.md': 'text of x' } },
        ],
      }),
    );
    registry.register(new SkillManagerCapability());
    const view = registry.view({ session: 's' });
    const first = await callTool(view, 'activate_skill', { name: 'a' });
    expect(first.text).toContain('refs/x.md');
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain(
      'already active',
    );
    const read = (path: string) => callTool(view, 'read_skill_file', { name: 'a', path });
    expect((await read('refs/x.md')).text).toBe('text of x');
    for (const path of ['../x', 'constructor', '__proto__', ''])
      expect((await read(path)).isError).toBe(true);
    expect(await view.compile()).toBe(await view.compile());
  });

  it('need a name and a description of their own', () => {
    const skill = { name: 'a', description: 'A.', body: '' };
    const make =
      (...skills: (typeof skill)[]) =>
      () =>
        memorySkills({ id: 'made', skills });
    expect(make({ ...skill, name: ' ' })).toThrow(
      expect.objectContaining({ code: 'invalid-config' }),
    );
    expect(make({ ...skill, description: '' })).toThrow(
      expect.objectContaining({ code: 'invalid-config' }),
    );
    expect(make(skill, skill)).toThrow(expect.objectContaining({ code: 'duplicate-id' }));
  });
});
