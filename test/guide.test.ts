import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { GUIDE, withExample } from '../scripts/guide-steps.mjs';
import { root } from './workspace.ts';

it('the guide shows the files of examples/openapi as they are (node scripts/guide-steps.mjs)', () => {
  const guide = readFileSync(join(root, GUIDE), 'utf8');
  expect(guide).toContain('class OpenApi');
  expect(guide).toBe(withExample(guide));
});
