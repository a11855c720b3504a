import { mkdir } from 'node:fs/promises';
import { setTimeout as after } from 'node:timers/promises';

import { describe, expect, it } from 'vitest';

import { Project, skillText } from './project.ts';

const many = (count: number, text = 'one') =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, text]));
const uri = (name: string) => `skill://${name}/SKILL.md`;

interface Step {
  readonly act: (project: Project) => Promise<unknown>;
  /** The skills that are there after it, by name, with their descriptions. */
  readonly gives: Readonly<Record<string, string>>;
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
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), gives: { a: 'two' }, names: 'a' },
    ],
  },
  {
    name: 'a file replaced by rename',
    prepare: (p) => p.skill('a'),
    steps: [{ act: (p) => p.replace('a', 'two'), gives: { a: 'two' }, names: 'a' }],
  },
  {
    name: 'a file replaced by rename for the second time',
    prepare: (p) => p.skill('a'),
    steps: [
      { act: (p) => p.replace('a', 'two'), gives: { a: 'two' }, names: 'a' },
      { act: (p) => p.replace('a', 'three'), gives: { a: 'three' }, names: 'a' },
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
        gives: { a: 'two' },
        names: 'a',
      },
    ],
  },
  {
    name: 'a new skill',
    prepare: (p) => p.skill('a'),
    steps: [{ act: (p) => p.skill('b'), gives: { a: 'one', b: 'one' }, names: 'b' }],
  },
  {
    name: 'a folder moved in',
    prepare: async (p) => {
      await p.skill('a');
      await p.skill('~stage', 'one', 'b');
    },
    steps: [{ act: (p) => p.rename('~stage', 'b'), gives: { a: 'one', b: 'one' }, names: 'b' }],
  },
  {
    name: 'an edit in a folder that was moved in',
    prepare: (p) => p.skill('~stage', 'one', 'b'),
    steps: [
      { act: (p) => p.rename('~stage', 'b'), gives: { b: 'one' }, names: 'b' },
      { act: (p) => p.write('b/SKILL.md', skillText('b', 'two')), gives: { b: 'two' }, names: 'b' },
    ],
  },
  {
    name: 'a removed skill',
    prepare: async (p) => {
      await p.skill('a');
      await p.skill('b');
    },
    steps: [{ act: (p) => p.remove('a'), gives: { b: 'one' }, names: 'a' }],
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
        gives: { a: 'two' },
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
        gives: { a: 'two' },
      },
      {
        act: (p) => p.write('a/SKILL.md', skillText('a', 'three')),
        gives: { a: 'three' },
        names: 'a',
      },
    ],
  },
  {
    name: 'a skill folder renamed',
    prepare: (p) => p.skill('a', 'one', 'kept'),
    steps: [{ act: (p) => p.rename('a', 'z'), gives: { kept: 'one' }, names: 'kept' }],
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
        gives: { a: 'two' },
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
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), gives: { a: 'two' }, names: 'a' },
    ],
  },
  {
    name: 'a link that comes later',
    prepare: (p) => p.skill('~real', 'one', 'a'),
    steps: [{ act: (p) => p.link('~real', 'a'), gives: { a: 'one' }, names: 'a' }],
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
        gives: { a: 'two' },
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
        gives: { a: 'two' },
      },
      {
        act: (p) => p.write('~v2/SKILL.md', skillText('a', 'three')),
        gives: { a: 'three' },
        names: 'a',
      },
    ],
  },
  {
    name: 'a folder that was missing, made with a skill in it',
    missing: true,
    steps: [{ act: (p) => p.skill('a'), gives: { a: 'one' }, names: 'a' }],
  },
  {
    name: 'an edit in a folder that was missing',
    missing: true,
    steps: [
      { act: (p) => p.skill('a'), gives: { a: 'one' } },
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), gives: { a: 'two' }, names: 'a' },
    ],
  },
  {
    name: 'a folder that was missing, moved in as a whole',
    missing: true,
    prepare: (p) => p.skill('~stage/skills/a'),
    steps: [{ act: (p) => p.rename('~stage', '~p/.agents'), gives: { a: 'one' }, names: 'a' }],
  },
  {
    name: 'a folder that was missing in a parent that was there',
    missing: true,
    prepare: (p) => mkdir(p.at('~p/.agents')),
    steps: [{ act: (p) => p.skill('a'), gives: { a: 'one' }, names: 'a' }],
  },
  {
    name: 'a skill in a group',
    prepare: (p) => p.skill('group/a'),
    steps: [
      {
        act: (p) => p.write('group/a/SKILL.md', skillText('a', 'two')),
        gives: { a: 'two' },
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
        gives: { a: 'two' },
        names: 'a',
      },
    ],
  },
  {
    name: 'the whole folder removed',
    prepare: (p) => p.skill('a'),
    steps: [{ act: (p) => p.remove(''), gives: {}, names: 'a' }],
  },
  {
    name: 'the whole folder removed and made again',
    prepare: (p) => p.skill('a'),
    steps: [
      { act: (p) => p.remove(''), gives: {} },
      { act: (p) => p.skill('b'), gives: { b: 'one' }, names: 'b' },
    ],
  },
  {
    name: 'an edit in the folder that was removed and made again',
    prepare: (p) => p.skill('a'),
    steps: [
      { act: (p) => p.remove(''), gives: {} },
      { act: (p) => p.skill('b'), gives: { b: 'one' } },
      { act: (p) => p.write('b/SKILL.md', skillText('b', 'two')), gives: { b: 'two' }, names: 'b' },
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
        gives: { b: 'one' },
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
        gives: { b: 'one' },
      },
      { act: (p) => p.write('b/SKILL.md', skillText('b', 'two')), gives: { b: 'two' }, names: 'b' },
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
        gives: { a: 'one', ...many(200) },
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
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), gives: { a: 'two' }, names: 'a' },
    ],
  },
  {
    name: 'an edit in a skill with a link in a circle',
    prepare: async (p) => {
      await p.skill('a');
      await p.link('', 'a/loop');
    },
    steps: [
      { act: (p) => p.write('a/SKILL.md', skillText('a', 'two')), gives: { a: 'two' }, names: 'a' },
    ],
  },
];

describe('a change under a running agent is seen, and named', () => {
  it.concurrent.for(SCENARIOS)('$name', async ({ missing, prepare, steps }, context) => {
    await using project = await Project.make(missing);
    await prepare?.(project);
    await project.watch();
    for (const { act, gives, names } of steps) {
      await act(project);
      const uris = await project.until(gives);
      if (names !== undefined) context.expect(uris).toContain(uri(names));
    }
  });

  it('there are 30 of them', () =>
    expect(new Set(SCENARIOS.map(({ name }) => name)).size).toBe(30));
});
