import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { ArmProcess, serveArm } from './arm-process.ts';
import { agentSteps, agentStepsAtOnce, callsAtOnce, singleCalls } from './cases/calls.ts';
import { growths } from './cases/growth.ts';
import { importTime, installSize } from './cases/import.ts';
import { largeResult } from './cases/large-result.ts';
import { serversAtStart, sessionsOverStdio } from './cases/processes.ts';
import { manySessions, sessionMemory } from './cases/sessions.ts';
import { manySkills } from './cases/skills.ts';
import { manyTools } from './cases/tools.ts';
import { watching } from './cases/watching.ts';
import type { Case } from './case.ts';
import { measure, type CaseResult, type Limits } from './measure.ts';
import { table } from './table.ts';

/** The goals are those of the full size. */
const smaller = (cases: readonly Case[]): readonly Case[] =>
  cases.map((work) => ({ ...work, goals: [] }));

const IN_BOTH: readonly Case[] = [
  importTime,
  installSize,
  sessionMemory,
  manySessions,
  ...singleCalls,
  ...callsAtOnce,
  ...agentSteps,
];

/** The same kinds of work in both; what takes long is smaller in the quick run, or not in it. */
const CASES: Readonly<Record<'quick' | 'full', () => readonly Case[]>> = {
  quick: () => [
    ...IN_BOTH,
    ...smaller([
      largeResult(1),
      ...sessionsOverStdio(4),
      serversAtStart(4, 0),
      ...manyTools(100, 20),
      ...manySkills(100),
    ]),
    ...growths(5),
  ],
  full: () => [
    ...IN_BOTH,
    ...agentStepsAtOnce,
    largeResult(10),
    ...sessionsOverStdio(100),
    serversAtStart(20, 0),
    serversAtStart(20, 500),
    ...manyTools(1_000, 200),
    ...manySkills(1_000),
    ...manySkills(10_000),
    ...growths(100),
    ...watching,
  ],
};

const LIMITS: Readonly<Record<'quick' | 'full', Limits>> = {
  quick: { timeMs: 500, minRounds: 3, spread: 0.1, leadMs: 0 },
  full: { timeMs: 30_000, minRounds: 20, spread: 0.1, leadMs: 300 },
};

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    /** A regular expression: only cases whose name it matches. */
    only: { type: 'string', default: '' },
    /** The case and the arm, by their numbers, that this process is for. */
    arm: { type: 'string' },
  },
});

const size = values.quick ? 'quick' : 'full';
const work = CASES[size]();

if (values.arm === undefined) await all();
else {
  const [index, arm] = values.arm.split('.').map(Number) as [number, number];
  serveArm(work[index]!.arms[arm]!, LIMITS[size].leadMs);
}

async function measured(index: number): Promise<CaseResult> {
  const { arms: own, ...rest } = work[index]!;
  const program = fileURLToPath(import.meta.url);
  const arms = own.map(
    ({ name }, arm) =>
      new ArmProcess(name, program, [...process.argv.slice(2), `--arm=${index}.${arm}`]),
  );
  try {
    return await measure({ ...rest, arms }, LIMITS[size]);
  } finally {
    await Promise.all(arms.map((arm) => arm.end()));
  }
}

async function all(): Promise<void> {
  const only = new RegExp(values.only, 'u');
  const cases: CaseResult[] = [];
  for (const [index, { name }] of work.entries()) {
    if (!only.test(name)) continue;
    console.error(`${name} …`);
    const result = await measured(index);
    cases.push(result);
    console.log(`${table(result)}\n`);
  }
  const results = new URL('../results/', import.meta.url);
  const report = {
    node: process.version,
    cores: availableParallelism(),
    date: new Date().toISOString(),
    cases,
  };
  mkdirSync(results, { recursive: true });
  writeFileSync(new URL('latest.json', results), `${JSON.stringify(report, undefined, 2)}\n`);
  const aimed = cases.filter(({ goals }) => goals.length > 0);
  console.log(
    `${aimed.filter(({ met }) => met).length} of ${aimed.length} cases meet their goals.`,
  );
  console.log(`Written to ${fileURLToPath(new URL('latest.json', results))}`);
}
