import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { localSkills } from '@patchbay/skills/node';
import { watch } from 'chokidar';

import type { Arm, Case, Cost } from '../case.ts';

/** Folders of skills, with three files each, as repositories have them. */
export interface Tree {
  readonly root: string;
  /** The folders in it that hold the skills: no source looks into more than 2,000 folders below one. */
  readonly groups: readonly string[];
  /** Of the SKILL.md of a skill. */
  file(skill: number): string;
  remove(): Promise<void>;
}

const PER_GROUP = 1_600;

export async function makeTree(skills: number): Promise<Tree> {
  const root = await mkdtemp(join(tmpdir(), 'patchbay-bench-'));
  const groups = Array.from({ length: Math.ceil(skills / PER_GROUP) }, (_, i) =>
    join(root, `g${i}`),
  );
  const file = (i: number) => join(groups[i % groups.length]!, `s${i}`, 'SKILL.md');
  for (let i = 0; i < skills; i++) {
    const folder = join(file(i), '..');
    await mkdir(join(folder, 'references'), { recursive: true });
    await mkdir(join(folder, 'scripts'));
    await writeFile(file(i), skillText(i, 'first'));
    await writeFile(join(folder, 'references/a.md'), 'a');
    await writeFile(join(folder, 'scripts/x.py'), 'x');
  }
  return { root, groups, file, remove: () => rm(root, { recursive: true, force: true }) };
}

export const skillText = (i: number, said: string) =>
  `---\nname: s${i}\ndescription: ${said}. Use it when s${i} is needed.\n---\n# s${i}\n`;

/** What watching cost in a process that did nothing else: milliseconds until an edit is seen for sure, and memory. */
interface Started extends Cost {
  readonly megabytes: number;
  /** What it told of an edit. */
  readonly told: string;
}

/** Runs with `--expose-gc`: the file to edit, the folder, the folders of skills. */
const WATCH = (begin: string) => `
  import { writeFile } from 'node:fs/promises';
  import { setTimeout as after } from 'node:timers/promises';
  const [file, text, root, ...groups] = process.argv.slice(1);
  const alive = setInterval(() => undefined, 1000);
  const rss = () => (gc(), gc(), process.memoryUsage().rss / 1e6);
  let heard;
  const told = new Promise((resolve) => (heard = resolve));
  ${begin}
  const before = rss();
  const cpu = process.cpuUsage();
  const start = performance.now();
  await watching();
  const value = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const megabytes = rss() - before;
  await writeFile(file, text);
  console.log(JSON.stringify({ value, cpu: (user + system) / 1000, megabytes, told: await told }));
  process.exit();
`;

const BEGIN = {
  /** The skills are known when it begins, as they are in a program: watching is what is measured. */
  patchbay: `
    const { localSkills } = await import(${JSON.stringify(import.meta.resolve('@patchbay/skills/node'))});
    const source = localSkills({ id: 'bench', folder: groups });
    await source.listSkills({ report: () => undefined });
    const watching = async () => {
      const changes = source.changes(new AbortController().signal)[Symbol.asyncIterator]();
      void changes.next().then(({ value }) => heard(value.sourceUri.split('/').at(-2)));
      while (source.revision() !== source.revision()) await after(1);
    };
  `,
  chokidar: `
    const { watch } = await import(${JSON.stringify(import.meta.resolve('chokidar'))});
    const watching = () => new Promise((resolve) => {
      const watcher = watch(root, { ignoreInitial: true });
      watcher.on('change', (path) => heard(path.split('/').at(-2)));
      watcher.on('ready', resolve);
    });
  `,
} as const;

async function start(begin: string, tree: Tree): Promise<Started> {
  const args = ['--expose-gc', '--input-type=module', '--eval', WATCH(begin), '--'];
  const edit = [tree.file(7), skillText(7, `edited at ${process.hrtime.bigint()}`)];
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...args, ...edit, tree.root, ...tree.groups],
    { timeout: 120_000 },
  );
  return JSON.parse(stdout) as Started;
}

function startCases(skills: number, once: boolean): readonly Case[] {
  const arms = (what: (started: Started) => Cost): readonly Arm[] =>
    Object.entries(BEGIN).map(([name, begin]) => {
      let tree: Tree | undefined;
      let told = '';
      return {
        name,
        setup: async () => void (tree = await makeTree(skills)),
        run: async () => {
          const started = await start(begin, tree!);
          told = started.told;
          return what(started);
        },
        answer: async () => told,
        teardown: async () => tree?.remove(),
      };
    });
  const goal = { arm: 'patchbay', against: 'chokidar', of: 'value' } as const;
  const count = skills.toLocaleString('en');
  return [
    {
      name: `watch start, ${count} skills`,
      unit: 'ms',
      once,
      warmUp: 0,
      arms: arms(({ value, cpu = 0 }) => ({ value, cpu })),
      goals: [{ ...goal, atMost: 0.1 }],
    },
    {
      name: `memory of watching ${count} skills`,
      unit: 'MB',
      once: true,
      arms: arms(({ megabytes }) => ({ value: megabytes })),
      goals: [{ ...goal, atMost: 0.2 }],
    },
  ];
}

/** From the end of the write to the moment at which the new description is at hand. */
function editCase(skills: number): Case {
  const timed = async (visible: Promise<void>): Promise<Cost> => {
    const before = performance.now();
    const late = setTimeout(() => {
      throw new Error('An edit was not seen within 10 s.');
    }, 10_000);
    await visible;
    clearTimeout(late);
    return { value: performance.now() - before };
  };
  const own = { tree: undefined as Tree | undefined, end: new AbortController(), edit: 0 };
  const other = { tree: undefined as Tree | undefined, close: async () => {}, edit: 0 };
  let seen: () => void = () => undefined;
  let source: ReturnType<typeof localSkills>;
  let events: AsyncIterator<unknown>;
  const list = () => source.listSkills({ report: () => undefined } as never);
  return {
    name: `edit to visible, ${skills.toLocaleString('en')} skills, debounce 10 ms`,
    unit: 'ms',
    arms: [
      {
        name: 'patchbay',
        setup: async () => {
          own.tree = await makeTree(skills);
          source = localSkills({ id: 'bench', folder: own.tree.groups, debounceMs: 10 });
          await list();
          events = source.changes(own.end.signal)[Symbol.asyncIterator]();
          while (source.revision() !== source.revision())
            await new Promise((resolve) => setTimeout(resolve, 1));
        },
        run: async () => {
          const i = ++own.edit % skills;
          const said = `edit ${own.edit}.`;
          await writeFile(own.tree!.file(i), skillText(i, `edit ${own.edit}`));
          const visible = async () => {
            do await events.next();
            while (!(await list()).some(({ description }) => description.startsWith(said)));
          };
          return await timed(visible());
        },
        teardown: async () => {
          own.end.abort();
          await own.tree?.remove();
        },
      },
      {
        name: 'chokidar',
        setup: async () => {
          other.tree = await makeTree(skills);
          const watcher = watch(other.tree.root, { ignoreInitial: true });
          other.close = () => watcher.close();
          watcher.on('change', (path) => {
            void readFile(path, 'utf8').then((text) => {
              if (text.includes(`edit ${other.edit}.`)) seen();
            });
          });
          await new Promise<void>((resolve) => watcher.on('ready', resolve));
        },
        run: async () => {
          const i = ++other.edit % skills;
          // It misses an edit now and then: two seconds are counted for that.
          const visible = new Promise<void>((resolve) => {
            const missed = setTimeout(resolve, 2_000);
            seen = () => {
              clearTimeout(missed);
              resolve();
            };
          });
          await writeFile(other.tree!.file(i), skillText(i, `edit ${other.edit}`));
          return await timed(visible);
        },
        teardown: async () => {
          await other.close();
          await other.tree?.remove();
        },
      },
    ],
    goals: [{ arm: 'patchbay', of: 'value', atMost: 15 }],
  };
}

/** A folder of skills under watch, beside plain chokidar with its defaults, which does not even read them. */
export const watching: readonly Case[] = [
  ...startCases(1_000, false),
  ...startCases(10_000, true),
  editCase(1_000),
];
