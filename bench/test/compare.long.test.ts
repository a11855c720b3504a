import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import { tables } from '../src/compare/tables.ts';

/** Cells of a table, however it is laid out. */
const cells = (markdown: string): readonly string[] =>
  markdown
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[\s|-]+$/.test(line))
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim())
        .join(' | '),
    );

it('docs/comparison.md says what happens on both sides', { timeout: 300_000 }, async () => {
  const page = readFileSync(new URL('../../docs/comparison.md', import.meta.url), 'utf8');
  const now = await tables(() => undefined);
  expect(cells(page)).toEqual(now.flatMap(cells));
});
