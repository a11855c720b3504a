import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Problem, SkillEntry } from '@patchbay/protocols';
import { localSkills } from '@patchbay/skills/node';

import { loneContext } from './bench-folder.ts';

/** Where an installed package lies. */
export const packageAt = (name: string): string =>
  realpathSync(fileURLToPath(new URL(`../node_modules/${name}`, import.meta.url)));

/** Every SKILL.md below a folder, wherever it lies. */
export function skillFilesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /^skill\.md$/i.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted((a, b) => (a < b ? -1 : 1));
}

/** What becomes of the SKILL.md files of a package, each as a source of its own. */
export interface CorpusReport {
  readonly files: number;
  readonly loaded: readonly SkillEntry[];
  /** Loaded, with what had to be repaired to read it. */
  readonly repaired: number;
  readonly refused: readonly Problem[];
  /** How often each problem occurs. */
  readonly codes: Readonly<Record<string, number>>;
}

/** What the author meant and wrote differently from the specification: read as it stands, nothing was repaired. */
const OBSERVATIONS: ReadonlySet<string> = new Set([
  'name-not-folder',
  'name-pattern',
  'name-too-long',
  'description-too-long',
]);

export async function readCorpus(files: readonly string[]): Promise<CorpusReport> {
  const loaded: SkillEntry[] = [];
  const refused: Problem[] = [];
  const codes: Record<string, number> = {};
  let repaired = 0;
  for (const file of files) {
    const problems: Problem[] = [];
    const source = localSkills({ id: 'corpus', folder: join(file, '..') });
    const context = { ...loneContext(), report: (problem: Problem) => void problems.push(problem) };
    const [entry] = await source.listSkills(context);
    for (const { code } of problems) codes[code] = (codes[code] ?? 0) + 1;
    if (entry === undefined) {
      refused.push(...problems);
      continue;
    }
    loaded.push(entry);
    if (problems.some(({ code }) => !OBSERVATIONS.has(code))) repaired++;
  }
  return { files: files.length, loaded, repaired, refused, codes };
}

export function printCorpus(name: string, report: CorpusReport): void {
  const { files, loaded, repaired, refused, codes } = report;
  console.log(
    `${name}: ${files} SKILL.md, ${loaded.length} loaded, ${repaired} of them repaired, ${refused.length} refused`,
    codes,
  );
}
