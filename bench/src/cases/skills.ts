import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { localSkills } from '@patchbay/skills/node';
import { listSkills as deepagentsSkills } from 'deepagents';
import { load } from 'js-yaml';

import type { Arm, Case } from '../case.ts';
import { makeTree, skillText, type Tree } from './watching.ts';

interface Found {
  readonly name: string;
  readonly description: string;
}

const ours = (groups: readonly string[]) => localSkills({ id: 'bench', folder: groups });
const listed = (source: ReturnType<typeof ours>): Promise<readonly Found[]> =>
  source.listSkills({ report: () => undefined } as never);

/** The least that finds and reads them, and blocks everything else meanwhile: no links, no limits, no checks, no problems. */
function floor(groups: readonly string[]): readonly Found[] {
  return groups.flatMap((group) =>
    readdirSync(group).map((name) => {
      const text = readFileSync(join(group, name, 'SKILL.md'), 'utf8');
      return load(text.slice(4, text.indexOf('\n---', 4))) as Found;
    }),
  );
}

const deepagents = (groups: readonly string[]): readonly Found[] =>
  groups.flatMap((projectSkillsDir) => deepagentsSkills({ projectSkillsDir }));

/** So many were found as they were written. */
const asWritten = (found: readonly Found[], edits: ReadonlyMap<string, string>): number =>
  found.filter(({ name, description }) => description.startsWith(`${edits.get(name) ?? 'first'}.`))
    .length;

type List = (groups: readonly string[]) => Promise<readonly Found[]> | readonly Found[];

/** `edits`: before each run one skill is written anew, outside of the time. */
function cases(skills: number, edits: boolean, lists: Readonly<Record<string, () => List>>): Case {
  const arms = Object.entries(lists).map(([name, make]): Arm => {
    const list = make();
    let tree: Tree | undefined;
    const said = new Map<string, string>();
    let edit = 0;
    return {
      name,
      setup: async () => {
        tree = await makeTree(skills);
        if (edits) await list(tree.groups);
      },
      run: async () => {
        if (edits) {
          const i = edit++ % skills;
          said.set(`s${i}`, `edit ${edit}`);
          await writeFile(tree!.file(i), skillText(i, `edit ${edit}`));
        }
        const cpu = process.cpuUsage();
        const before = performance.now();
        await list(tree!.groups);
        const value = performance.now() - before;
        const { user, system } = process.cpuUsage(cpu);
        return { value, cpu: (user + system) / 1000 };
      },
      answer: async () => asWritten(await list(tree!.groups), said),
      teardown: async () => tree?.remove(),
    };
  });
  return {
    name: `${skills.toLocaleString('en')} skills, ${edits ? 'found again after one edit' : 'found and their metadata read'}`,
    unit: 'ms',
    warmUp: 1,
    rounds: 5,
    arms,
    goals: [
      { arm: 'patchbay', against: 'bare YAML loop', of: 'value', atMost: 1.4 },
      { arm: 'patchbay', against: 'deepagents', of: 'value', atMost: 1 / 4 },
    ],
  };
}

const PEERS = { 'bare YAML loop': () => floor, deepagents: () => deepagents } as const;

export const manySkills = (skills: number): readonly Case[] => [
  cases(skills, false, { patchbay: () => (groups) => listed(ours(groups)), ...PEERS }),
  cases(skills, true, {
    patchbay: () => {
      let source: ReturnType<typeof ours> | undefined;
      return (groups) => listed((source ??= ours(groups)));
    },
    ...PEERS,
  }),
];
