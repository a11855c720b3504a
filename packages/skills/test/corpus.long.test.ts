import { expect, it } from 'vitest';

import { packageAt, printCorpus, readCorpus, skillFilesBelow } from './corpus.ts';

it('of 719 skills of ecc-universal none is lost', async () => {
  const report = await readCorpus(skillFilesBelow(packageAt('ecc-universal')));
  printCorpus('ecc-universal', report);
  expect(report.files).toBe(719);
  expect(report.refused).toEqual([]);
  expect(report.loaded).toHaveLength(719);
  // What the field writes is not always YAML: read anyway, and said.
  expect(report.codes['invalid-yaml']).toBe(17);
  expect(report.codes['no-frontmatter']).toBe(5);
});
