import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  open,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ExtensionRegistry } from '@patchbay/registry';
import { localSkills } from '@patchbay/skills/node';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { fixture } from './bench-folder.ts';
import { Project, skillText, watches } from './project.ts';

/** Builds the layout of a public report in a new project; its `root` is where the report's is. */
async function reported(key: string, ...more: readonly string[]): Promise<Project> {
  const project = await Project.make(true);
  execFileSync(process.execPath, [join(fixture(key), 'setup.mjs'), project.base, ...more]);
  project.root = join(project.base, 'root');
  return project;
}

const one = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, `Skill ${name}`]));

describe('a root that is not there yet', () => {
  it('claude-code-31559: every way in which a skill comes is one event, and is seen', async () => {
    await using project = await reported('claude-code-31559');
    await project.watch({ debounceMs: 100 });
    const step = async (act: () => Promise<unknown>, gives: Readonly<Record<string, string>>) => {
      await act();
      await project.until(gives);
    };
    await mkdir(project.root);
    await step(() => project.skill('one'), { one: 'one' });
    await step(() => project.rename('~staging/moved', 'moved'), { one: 'one', ...one('moved') });
    await step(() => cp(project.at('~staging/copied'), project.at('copied'), { recursive: true }), {
      one: 'one',
      ...one('copied', 'moved'),
    });
    await step(() => project.replace('one', 'two'), { one: 'two', ...one('copied', 'moved') });
    await step(() => project.skill('group/two', 'nested'), {
      one: 'two',
      two: 'nested',
      ...one('copied', 'moved'),
    });
    await step(() => project.remove(''), {});
    await step(() => project.skill('again'), { again: 'one' });
  });

  it('claude-code-31559: what is empty or half written for a while leaves nothing behind', async () => {
    await using project = await reported('claude-code-31559');
    await project.watch({ debounceMs: 20 });
    await mkdir(project.at('a'), { recursive: true });
    await project.write('a/SKILL.md', '');
    expect(await project.event()).toMatch(/a\/SKILL\.md$/);
    expect(await project.problems()).toEqual(['skill-empty']);
    await project.write('a/SKILL.md', '---\nname: a\ndescr');
    await project.event();
    await project.write('a/SKILL.md', skillText('a', 'whole'));
    await project.until({ a: 'whole' });
    expect(await project.problems()).toEqual([]);
  });

  it('claude-code-31559: only what leads to it is watched, and not what lies beside it', async () => {
    await using project = await reported('claude-code-31559');
    for (let i = 0; i < 50; i++)
      await mkdir(project.at(`~beside${i}/deep/er`), { recursive: true });
    const before = watches();
    await project.watch();
    expect(watches() - before).toBe(1);
  });
});

describe('what is not watched', () => {
  let project: Project;
  beforeAll(async () => {
    project = await reported('openclaw-6429', '600');
  }, 60_000);
  afterAll(() => project[Symbol.asyncDispose]());

  it('openclaw-6429: packages and environments in a skill cost no handle and are not heard', async () => {
    const descriptors = readdirSync('/proc/self/fd').length;
    const before = watches();
    await project.watch({ debounceMs: 100 });
    // The folder, what leads to it, and its two skills.
    expect(watches() - before).toBe(4);
    expect(readdirSync('/proc/self/fd').length - descriptors).toBeLessThan(10);
    expect(Object.keys(await project.list())).toEqual(['heavy', 'light']);
    await writeFile(project.at('heavy/.venv/lib/new.py'), 'x');
    await writeFile(project.at('heavy/node_modules/dep/new.js'), 'x');
    await writeFile(project.at('heavy/build.log'), 'x');
    expect(project.isCurrent()).toBe(true);
    await project.write('heavy/SKILL.md', skillText('heavy', 'edited'));
    expect(await project.until({ heavy: 'edited', ...one('light') })).toEqual([
      'skill://heavy/SKILL.md',
    ]);
  });

  it('openclaw-6429: few descriptors are enough for many skills, and other programs still start', () => {
    const limited = `ulimit -n 256; exec "$0" "$@"`;
    const args = ['-c', limited, process.execPath, bundle, 'many', project.at('~many')];
    const output = execFileSync('sh', args, { encoding: 'utf8' });
    expect(JSON.parse(output)).toEqual({ skills: 600, problems: [], started: 'started' });
  });
});

describe('what is removed', () => {
  it('openclaw-66617: the list is what the disk says after each step', async () => {
    await using project = await reported('openclaw-66617');
    await project.watch({ debounceMs: 50 });
    expect(await project.open('display-name')).toBeDefined();
    await project.remove('gone');
    await project.until(one('keepdir', 'oldname', 'stays', 'toggle'));
    expect(await project.open('display-name')).toBeUndefined();
    await project.rename('oldname', 'newname');
    await project.event();
    // It is the same skill, by its own name, in another folder.
    expect(await project.list()).toEqual(one('keepdir', 'oldname', 'stays', 'toggle'));
    await project.remove('keepdir/SKILL.md');
    await project.until(one('oldname', 'stays', 'toggle'));
    await project.rename('toggle/SKILL.md', 'toggle/SKILL.md.off');
    await project.until(one('oldname', 'stays'));
    await project.rename('toggle/SKILL.md.off', 'toggle/SKILL.md');
    await project.until(one('oldname', 'stays', 'toggle'));
    await project.remove('');
    await project.until({});
    expect(await project.open('stays')).toBeUndefined();
    await project.skill('stays', 'Skill stays');
    await project.until(one('stays'));
  });

  it('claude-code-89207: when the winner of a name goes and comes back while it is watched', async () => {
    await using project = await Project.make();
    await project.skill('~user/deploy', 'of the user');
    await project.skill('deploy', 'of the project');
    await using registry = new ExtensionRegistry({ onProblem: () => undefined });
    registry.register(localSkills({ id: 'project', folder: project.root, debounceMs: 50 }));
    registry.register(
      localSkills({ id: 'user', folder: project.at('~user'), precedence: 20, debounceMs: 50 }),
    );
    const view = registry.view({ session: 's' });
    const shown = async () => (await view.compile()).skills.map(({ source }) => source);
    expect(await shown()).toEqual(['project', 'user']);
    const end = new AbortController();
    const events = view.changes({ signal: end.signal })[Symbol.asyncIterator]();
    await project.rename('deploy', '.away');
    expect((await events.next()).value).toMatchObject({ capability: 'project' });
    expect(await shown()).toEqual(['user']);
    await project.rename('.away', 'deploy');
    expect((await events.next()).value).toMatchObject({ capability: 'project' });
    expect(await shown()).toEqual(['project', 'user']);
    end.abort();
  });
});

describe('how editors save', () => {
  it('graphpilot-31: 50 saves by rename lose nothing, are few events, and never show half a file', async () => {
    await using project = await reported('graphpilot-31');
    const text = (i: number) => `${skillText('demo', `version ${i}`)}${'x'.repeat(20_000)}\n`;
    await project.write('demo/SKILL.md', text(0));
    await project.watch({ debounceMs: 100 });
    const saved = new AbortController();
    const saving = (async () => {
      for (let i = 1; i <= 50; i++) await save(project.at('demo/SKILL.md'), text(i));
      saved.abort();
    })();
    while (!saved.signal.aborted) {
      const opened = await project.open('demo');
      expect(opened?.body.endsWith(`# demo\n${'x'.repeat(20_000)}`)).toBe(true);
      expect(Object.keys(await project.list())).toEqual(['demo']);
    }
    await saving;
    const events = await project.until({ demo: 'version 50' });
    expect(events.length).toBeLessThan(25);
    expect(new Set(events)).toEqual(new Set(['skill://demo/SKILL.md']));
    await appendFile(project.at('demo/SKILL.md'), 'end');
    expect(await project.event()).toBe('skill://demo/SKILL.md');
  });

  it('graphpilot-31: an editor that moves the file away before it writes it anew', async () => {
    await using project = await reported('graphpilot-31');
    await project.watch({ debounceMs: 100 });
    for (let i = 1; i <= 20; i++) {
      const asked = Promise.all([project.list(), project.open('demo')]);
      await project.rename('demo/SKILL.md', 'demo/SKILL.md~');
      await project.write('demo/SKILL.md', skillText('demo', `version ${i}`));
      await project.remove('demo/SKILL.md~');
      const [list, opened] = await asked;
      expect([Object.keys(list), opened?.entry.name]).toEqual([['demo'], 'demo']);
    }
    expect(new Set(await project.until({ demo: 'version 20' }))).toEqual(
      new Set(['skill://demo/SKILL.md']),
    );
  });
});

describe('links', () => {
  it('maka-4096: an edit behind a link, and a link that is led elsewhere, are told', async () => {
    await using project = await reported('maka-4096');
    await project.watch({ debounceMs: 50 });
    const before = await project.list();
    await writeFile(project.at('~shared/dirlink/SKILL.md'), skillText('dirlink', 'Edited.'));
    expect(await project.until({ ...before, dirlink: 'Edited.' })).toContain(
      'skill://dirlink/SKILL.md',
    );
    await project.skill('~elsewhere/dirlink', 'Elsewhere.');
    await rm(project.at('dirlink-again'));
    await symlink(project.at('~elsewhere/dirlink'), project.at('.new'));
    await rename(project.at('.new'), project.at('dirlink'));
    await project.until({ ...before, dirlink: 'Elsewhere.' });
  });
});

describe('a program that watches', () => {
  it('ends when nothing else keeps it alive', () => {
    expect(program('idle')).toEqual({});
  });

  it('wsl-4739: sees an edit on a drive that gives no events with `poll`, and ends all the same', () => {
    expect(program('poll', 'silent')).toEqual({
      skills: 1,
      event: 'skill://a/SKILL.md',
      problems: [],
    });
  });

  it('wsl-4739: sees it without `poll` at a compile, though nobody tells', () => {
    expect(program('compile', 'silent')).toEqual({ skills: 1, problems: [] });
  });

  it('wsl-4739: goes on where the system gives no more watches, and has one problem', () => {
    expect(program('enospc', 'enospc')).toEqual({ skills: 1, problems: ['watch-limit'] });
  });
});

let folder: string;
let bundle: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'patchbay-program-'));
  bundle = join(folder, 'program.mjs');
  await build({
    entryPoints: [fileURLToPath(new URL('watch-program.ts', import.meta.url))],
    outfile: bundle,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['@patchbay/source'],
    logLevel: 'error',
  });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What the program saw in a folder with one skill; `watch`: the system's watches are silent, or come to their limit. */
function program(mode: string, watch?: 'silent' | 'enospc'): unknown {
  const skills = mkdtempSync(join(folder, 'skills-'));
  mkdirSync(join(skills, 'a'));
  writeFileSync(join(skills, 'a/SKILL.md'), skillText('a', 'first'));
  const dead = join(fixture('wsl-4739'), 'dead-watch.mjs');
  const args = [...(watch === undefined ? [] : ['--import', dead]), bundle, mode, skills];
  const env = { PATH: process.env['PATH'], FIXTURE_MODE: watch };
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', env }));
}

/** Writes beside the file, makes sure of it, and renames it over the file. */
async function save(file: string, text: string): Promise<void> {
  const handle = await open(`${file}.tmp`, 'w');
  await handle.writeFile(text);
  await handle.sync();
  await handle.close();
  await rename(`${file}.tmp`, file);
}
