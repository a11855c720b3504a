import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { suitesPage } from '../scripts/suites-page.mjs';
import { root } from './workspace.ts';

it('docs/suites.md is what the suites and their users are (node scripts/suites-page.mjs)', () => {
  expect(readFileSync(join(root, 'docs/suites.md'), 'utf8')).toBe(suitesPage(root));
});
