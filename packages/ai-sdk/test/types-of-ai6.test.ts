import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

it('the types fit ai 6 as well: the same source and the same program under its declarations', () => {
  const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
  const project = fileURLToPath(new URL('ai6/tsconfig.json', import.meta.url));
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(dirname(typescript), 'bin/tsc'), '-p', project, '--listFiles'],
    { encoding: 'utf8', timeout: 60_000 },
  );
  expect(stdout.split('\n').filter((line) => line.includes('error TS'))).toEqual([]);
  expect(stdout).toMatch(/\/ai@6\./u);
  expect(stdout).not.toMatch(/\/ai@7\./u);
  expect(status).toBe(0);
});
