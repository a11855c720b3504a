import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { apiReports } from '../scripts/api.mjs';
import { root } from './workspace.ts';

it('packages/*/api.txt are the public signatures as they are (pnpm api)', async () => {
  const reports = await apiReports();
  expect(reports.size).toBeGreaterThan(0);
  for (const [file, report] of reports) {
    const path = join(root, file);
    expect([file, existsSync(path) ? readFileSync(path, 'utf8') : '']).toEqual([file, report]);
  }
});
