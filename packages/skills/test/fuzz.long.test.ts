import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { booleanField, listField, readFrontmatter, textField } from '@patchbay/files';
import fc from 'fast-check';
import { expect, it } from 'vitest';

/** Printed, so that a run can be repeated: `SEED=… vitest run`. */
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
console.log(`fuzzed frontmatter: seed ${seed}`);

/** Files of public reports, each of which broke a reader once. */
const CASES = fileURLToPath(new URL('fixtures', import.meta.url));
const seeds = readdirSync(CASES, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('SKILL.md'))
  .map((path) => readFileSync(join(CASES, path)));

/** A file with some of its bytes cut, doubled, or exchanged for others. */
const mutated = fc
  .tuple(
    fc.constantFrom(...seeds),
    fc.array(fc.tuple(fc.nat(), fc.nat(40), fc.uint8Array({ maxLength: 12 })), { maxLength: 8 }),
  )
  .map(([bytes, edits]) =>
    edits.reduce((text, [at, length, put]) => {
      const from = text.length === 0 ? 0 : at % text.length;
      return Buffer.concat([text.subarray(0, from), put, text.subarray(from + length)]);
    }, bytes),
  );

it('10,000 mutated files are read or refused, with every problem in a line of the file', () => {
  expect(seeds.length).toBeGreaterThan(30);
  fc.assert(
    fc.property(mutated, fc.boolean(), (bytes, partial) => {
      const file = readFrontmatter(bytes, { file: 'SKILL.md', source: 'fuzz', partial });
      const problems = 'refused' in file ? [file.refused] : file.problems;
      const lines = bytes.toString('latin1').split(/\r\n?|\n/).length;
      for (const { line, message } of problems) {
        expect(line).toBeGreaterThanOrEqual(1);
        expect(line).toBeLessThanOrEqual(lines + 1);
        expect(message).toContain('SKILL.md:');
      }
      if ('refused' in file) return;
      expect(Object.getPrototypeOf(file.data)).toBeNull();
      for (const name of ['name', 'description', 'allowed-tools', 'user-invocable']) {
        textField(file.data, name);
        listField(file.data, name);
        booleanField(file.data, name);
      }
      // What is read can be kept: nothing grew beyond what was written, as it does where aliases are expanded.
      expect(JSON.stringify(file.data).length).toBeLessThan(bytes.length * 8 + 100);
    }),
    { seed, numRuns: 10_000 },
  );
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});
