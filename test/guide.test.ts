import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { GUIDES, withExample } from '../scripts/guide-steps.mjs';
import { root } from './workspace.ts';

it.each(GUIDES)(
  '%s shows the files of examples as they are (node scripts/guide-steps.mjs)',
  (file) => {
    const guide = readFileSync(join(root, file), 'utf8');
    expect(guide).toContain('```ts file=');
    expect(guide).toBe(withExample(guide));
  },
);
