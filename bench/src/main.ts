import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { importTime, installSize } from './cases/import.ts';
import { manySessions, sessionMemory } from './cases/sessions.ts';
import { singleCalls } from './cases/single-call.ts';
import { watching } from './cases/watching.ts';
import type { Case } from './case.ts';
import { measure, type CaseResult, type Limits } from './measure.ts';
import { table } from './table.ts';

const CASES: readonly Case[] = [
  importTime,
  installSize,
  sessionMemory,
  manySessions,
  ...singleCalls,
  ...watching,
];

const LIMITS: Readonly<Record<'quick' | 'full', Limits>> = {
  quick: { timeMs: 2_000, minRounds: 5, spread: 0.1 },
  full: { timeMs: 30_000, minRounds: 20, spread: 0.1 },
};

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });

const cases: CaseResult[] = [];
for (const work of CASES) {
  if (values.quick && watching.includes(work)) continue;
  console.error(`${work.name} …`);
  const result = await measure(work, LIMITS[values.quick ? 'quick' : 'full']);
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
console.log(`${cases.filter(({ met }) => met).length} of ${cases.length} cases meet their goals.`);
console.log(`Written to ${fileURLToPath(new URL('latest.json', results))}`);
