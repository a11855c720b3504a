import { execFileSync } from 'node:child_process';
import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';

import { localSkills, type LocalSkillsOptions } from '@patchbay/skills/node';
import { describe, expect, it } from 'vitest';

import { loneContext } from './bench-folder.ts';

/** A project with a folder of skills in it, which somebody watches. */
class Project implements AsyncDisposable {
  readonly base: string;
  /** Of the skills; may not be there yet. */
  readonly root: string;
  readonly #end = new AbortController();
  #source: ReturnType<typeof localSkills> | undefined;
  #events: AsyncIterator<{ readonly sourceUri?: string }> | undefined;

  private constructor(base: string) {
    this.base = base;
    this.root = join(base, 'p/.agents/skills');
  }

  static async make(missing = false): Promise<Project> {
    const base = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-watching-')));
    const project = new Project(base);
    await mkdir(missing ? join(base, 'p') : project.root, { recursive: true });
    return project;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await rm(this.base, { recursive: true, force: true });
  }

  /** Below the skills, or with a leading `~` below the base. */
  at(path: string): string {
    return path.startsWith('~') ? join(this.base, path.slice(1)) : join(this.root, path);
  }

  async skill(path: string, text = 'one', name = basename(path)): Promise<void> {
    const folder = this.at(path);
    await mkdir(join(folder, 'references'), { recursive: true });
    await mkdir(join(folder, 'scripts'), { recursive: true });
    await writeFile(join(folder, 'SKILL.md'), skillText(name, text));
    await writeFile(join(folder, 'references/a.md'), 'a');
  }

  write(path: string, text: string): Promise<void> {
    return writeFile(this.at(path), text);
  }

  /** An editor that writes a new file and renames it over the old one. */
  async replace(path: string, text: string): Promise<void> {
    await this.write(`${path}/.SKILL.md.tmp`, skillText(basename(path), text));
    await rename(this.at(`${path}/.SKILL.md.tmp`), this.at(`${path}/SKILL.md`));
  }

  rename(from: string, to: string): Promise<void> {
    return rename(this.at(from), this.at(to));
  }

  remove(path: string): Promise<void> {
    return rm(this.at(path), { recursive: true });
  }

  async link(target: string, path: string): Promise<void> {
    await mkdir(dirname(this.at(path)), { recursive: true });
    await symlink(this.at(target), this.at(path));
  }

  /** Begins to watch; everything is watched when it is resolved. */
  async watch(options: Partial<LocalSkillsOptions> = {}): Promise<void> {
    this.#source = localSkills({ id: 'mine', folder: this.root, optional: true, ...options });
    this.#events = this.#source.changes(this.#end.signal)[Symbol.asyncIterator]();
    await expect.poll(() => this.isCurrent(), { interval: 5, timeout: 10_000 }).toBe(true);
  }

  /** What is there, as the watched source says it: name and description. */
  async list(): Promise<Readonly<Record<string, string>>> {
    return describeSkills(await this.#source!.listSkills(loneContext()));
  }

  /** Whether the source vouches for what it said last. */
  isCurrent(): boolean {
    return this.#source!.revision() === this.#source!.revision();
  }

  open(name: string) {
    return this.#source!.openSkill(`skill://${name}/SKILL.md`, loneContext());
  }

  async event(): Promise<string | undefined> {
    const { value } = await this.#events!.next();
    return (value as { readonly sourceUri?: string } | undefined)?.sourceUri;
  }

  /** Waits for events until what is listed is this; the URIs that they named. */
  async until(
    expected: Readonly<Record<string, string>>,
  ): Promise<readonly (string | undefined)[]> {
    const uris: (string | undefined)[] = [];
    do uris.push(await this.event());
    while (JSON.stringify(await this.list()) !== JSON.stringify(sorted(expected)));
    // A fresh look at the disk says the same.
    const fresh = localSkills({ id: 'fresh', folder: this.root, optional: true });
    expect(describeSkills(await fresh.listSkills(loneContext()))).toEqual(expected);
    return uris;
  }
}

const skillText = (name: string, text: string) =>
  `---\nname: ${name}\ndescription: ${text}\n---\n# ${name}\n`;
const sorted = (map: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
const describeSkills = (
  entries: readonly { readonly name: string; readonly description: string }[],
) => sorted(Object.fromEntries(entries.map(({ name, description }) => [name, description])));
const many = (count: number, text = 'one') =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, text]));
const uri = (name: string) => `skill://${name}/SKILL.md`;

interface Step {
  readonly act: (project: Project) => Promise<unknown>;
  /** The skills that are there after it, by name, with their descriptions. */
  readonly then: Readonly<Record<string, string>>;
  /** The one that is named, where it is about one. */
  readonly names?: string;
}

interface Scenario {
  readonly name: string;
  /** Neither the folder nor its parent is there. */
  readonly missing?: true;
  readonly prepare?: (project: Project) => Promise<unknown>;
  readonly steps: readonly Step[];
}

/** The 30 ways in which files were seen to change under a running agent. */
const SCENARIOS: readonly Scenario[] = [
  {
    name: 'an edit in place',
    prepare: (p) => p.skill('a'),
    steps: [
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), then: { a: 'two' }, names: 'a' },
    ],
  },
  {
    name: 'a file replaced by rename',
    prepare: (p) => p.skill('a'),
    steps: [{ act: (p) => p.replace('a', 'two'), then: { a: 'two' }, names: 'a' }],
  },
  {
    name: 'a file replaced by rename for the second time',
    prepare: (p) => p.skill('a'),
    steps: [
      { act: (p) => p.replace('a', 'two'), then: { a: 'two' }, names: 'a' },
      { act: (p) => p.replace('a', 'three'), then: { a: 'three' }, names: 'a' },
    ],
  },
  {
    name: 'a file removed and written anew after a while',
    prepare: (p) => p.skill('a'),
    steps: [
      {
        act: async (p) => {
          await p.remove('a/SKILL.md');
          await after(60);
          await p.write('a/SKILL.md', skillText('a', 'two'));
        },
        then: { a: 'two' },
        names: 'a',
      },
    ],
  },
  {
    name: 'a new skill',
    prepare: (p) => p.skill('a'),
    steps: [{ act: (p) => p.skill('b'), then: { a: 'one', b: 'one' }, names: 'b' }],
  },
  {
    name: 'a folder moved in',
    prepare: async (p) => {
      await p.skill('a');
      await p.skill('~stage', 'one', 'b');
    },
    steps: [{ act: (p) => p.rename('~stage', 'b'), then: { a: 'one', b: 'one' }, names: 'b' }],
  },
  {
    name: 'an edit in a folder that was moved in',
    prepare: (p) => p.skill('~stage', 'one', 'b'),
    steps: [
      { act: (p) => p.rename('~stage', 'b'), then: { b: 'one' }, names: 'b' },
      { act: (p) => p.write('b/SKILL.md', skillText('b', 'two')), then: { b: 'two' }, names: 'b' },
    ],
  },
  {
    name: 'a removed skill',
    prepare: async (p) => {
      await p.skill('a');
      await p.skill('b');
    },
    steps: [{ act: (p) => p.remove('a'), then: { b: 'one' }, names: 'a' }],
  },
  {
    name: 'a folder exchanged for another',
    prepare: async (p) => {
      await p.skill('a');
      await p.skill('~stage', 'two', 'a');
    },
    steps: [
      {
        act: async (p) => {
          await p.rename('a', '~old');
          await p.rename('~stage', 'a');
        },
        then: { a: 'two' },
        names: 'a',
      },
    ],
  },
  {
    name: 'an edit in a folder that was exchanged',
    prepare: async (p) => {
      await p.skill('a');
      await p.skill('~stage', 'two', 'a');
    },
    steps: [
      {
        act: async (p) => {
          await p.rename('a', '~old');
          await p.rename('~stage', 'a');
        },
        then: { a: 'two' },
      },
      {
        act: (p) => p.write('a/SKILL.md', skillText('a', 'three')),
        then: { a: 'three' },
        names: 'a',
      },
    ],
  },
  {
    name: 'a skill folder renamed',
    prepare: (p) => p.skill('a', 'one', 'kept'),
    steps: [{ act: (p) => p.rename('a', 'z'), then: { kept: 'one' }, names: 'kept' }],
  },
  {
    name: 'a linked folder whose target is edited',
    prepare: async (p) => {
      await p.skill('~real', 'one', 'a');
      await p.link('~real', 'a');
    },
    steps: [
      {
        act: (p) => p.write('~real/SKILL.md', skillText('a', 'two')),
        then: { a: 'two' },
        names: 'a',
      },
    ],
  },
  {
    name: 'a linked folder edited through the link',
    prepare: async (p) => {
      await p.skill('~real', 'one', 'a');
      await p.link('~real', 'a');
    },
    steps: [
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), then: { a: 'two' }, names: 'a' },
    ],
  },
  {
    name: 'a link that comes later',
    prepare: (p) => p.skill('~real', 'one', 'a'),
    steps: [{ act: (p) => p.link('~real', 'a'), then: { a: 'one' }, names: 'a' }],
  },
  {
    name: 'a link that is led elsewhere',
    prepare: async (p) => {
      await p.skill('~v1', 'one', 'a');
      await p.skill('~v2', 'two', 'a');
      await p.link('~v1', 'a');
    },
    steps: [
      {
        act: async (p) => {
          await p.link('~v2', '.a.new');
          await p.rename('.a.new', 'a');
        },
        then: { a: 'two' },
        names: 'a',
      },
    ],
  },
  {
    name: 'an edit behind a link that was led elsewhere',
    prepare: async (p) => {
      await p.skill('~v1', 'one', 'a');
      await p.skill('~v2', 'two', 'a');
      await p.link('~v1', 'a');
    },
    steps: [
      {
        act: async (p) => {
          await p.link('~v2', '.a.new');
          await p.rename('.a.new', 'a');
        },
        then: { a: 'two' },
      },
      {
        act: (p) => p.write('~v2/SKILL.md', skillText('a', 'three')),
        then: { a: 'three' },
        names: 'a',
      },
    ],
  },
  {
    name: 'a folder that was missing, made with a skill in it',
    missing: true,
    steps: [{ act: (p) => p.skill('a'), then: { a: 'one' }, names: 'a' }],
  },
  {
    name: 'an edit in a folder that was missing',
    missing: true,
    steps: [
      { act: (p) => p.skill('a'), then: { a: 'one' } },
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), then: { a: 'two' }, names: 'a' },
    ],
  },
  {
    name: 'a folder that was missing, moved in as a whole',
    missing: true,
    prepare: (p) => p.skill('~stage/skills/a'),
    steps: [{ act: (p) => p.rename('~stage', '~p/.agents'), then: { a: 'one' }, names: 'a' }],
  },
  {
    name: 'a folder that was missing in a parent that was there',
    missing: true,
    prepare: (p) => mkdir(p.at('~p/.agents')),
    steps: [{ act: (p) => p.skill('a'), then: { a: 'one' }, names: 'a' }],
  },
  {
    name: 'a skill in a group',
    prepare: (p) => p.skill('group/a'),
    steps: [
      {
        act: (p) => p.write('group/a/SKILL.md', skillText('a', 'two')),
        then: { a: 'two' },
        names: 'a',
      },
    ],
  },
  {
    name: 'a SKILL.md that is a link, and its target is edited',
    prepare: async (p) => {
      await p.skill('~real', 'one', 'a');
      await p.link('~real/SKILL.md', 'a/SKILL.md');
    },
    steps: [
      {
        act: (p) => p.write('~real/SKILL.md', skillText('a', 'two')),
        then: { a: 'two' },
        names: 'a',
      },
    ],
  },
  {
    name: 'the whole folder removed',
    prepare: (p) => p.skill('a'),
    steps: [{ act: (p) => p.remove(''), then: {}, names: 'a' }],
  },
  {
    name: 'the whole folder removed and made again',
    prepare: (p) => p.skill('a'),
    steps: [
      { act: (p) => p.remove(''), then: {} },
      { act: (p) => p.skill('b'), then: { b: 'one' }, names: 'b' },
    ],
  },
  {
    name: 'an edit in the folder that was removed and made again',
    prepare: (p) => p.skill('a'),
    steps: [
      { act: (p) => p.remove(''), then: {} },
      { act: (p) => p.skill('b'), then: { b: 'one' } },
      { act: (p) => p.write('b/SKILL.md', skillText('b', 'two')), then: { b: 'two' }, names: 'b' },
    ],
  },
  {
    name: 'the whole folder exchanged at once',
    prepare: async (p) => {
      await p.skill('a');
      await p.skill('~other/b');
    },
    steps: [
      {
        act: async (p) => {
          await p.rename('', '~old');
          await p.rename('~other', '');
        },
        then: { b: 'one' },
      },
    ],
  },
  {
    name: 'an edit in the folder that was exchanged',
    prepare: async (p) => {
      await p.skill('a');
      await p.skill('~other/b');
    },
    steps: [
      {
        act: async (p) => {
          await p.rename('', '~old');
          await p.rename('~other', '');
        },
        then: { b: 'one' },
      },
      { act: (p) => p.write('b/SKILL.md', skillText('b', 'two')), then: { b: 'two' }, names: 'b' },
    ],
  },
  {
    name: '200 skills at once',
    prepare: (p) => p.skill('a'),
    steps: [
      {
        act: async (p) => {
          for (let i = 0; i < 200; i++) await p.skill(`n${i}`);
        },
        then: { a: 'one', ...many(200) },
      },
    ],
  },
  {
    name: 'an edit beside a link that leads nowhere',
    prepare: async (p) => {
      await p.link('~nowhere', 'dead');
      await p.skill('a');
    },
    steps: [
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), then: { a: 'two' }, names: 'a' },
    ],
  },
  {
    name: 'an edit in a skill with a link in a circle',
    prepare: async (p) => {
      await p.skill('a');
      await p.link('', 'a/loop');
    },
    steps: [
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), then: { a: 'two' }, names: 'a' },
    ],
  },
];

describe('a change under a running agent is seen, and named', () => {
  it.concurrent.for(SCENARIOS)('$name', async ({ missing, prepare, steps }, context) => {
    await using project = await Project.make(missing);
    await prepare?.(project);
    await project.watch();
    for (const { act, then, names } of steps) {
      await act(project);
      const uris = await project.until(then);
      if (names !== undefined) context.expect(uris).toContain(uri(names));
    }
  });

  it('there are 30 of them', () =>
    expect(new Set(SCENARIOS.map(({ name }) => name)).size).toBe(30));
});
