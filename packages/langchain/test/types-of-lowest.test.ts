import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

it('the types fit the lowest LangChain as well: the same source and the same program under its declarations', () => {
  const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
  const project = fileURLToPath(new URL('./lowest/tsconfig.json', import.meta.url));
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(dirname(typescript), 'bin/tsc'), '-p', project, '--listFiles'],
    { encoding: 'utf8', timeout: 60_000 },
  );
  expect(stdout.split('\n').filter((line) => line.includes('error TS'))).toEqual([]);
  expect(stdout).toMatch(/\/langchain@1\.2\.39/u);
  expect(stdout).not.toMatch(/\/langchain@1\.5\./u);
  expect(status).toBe(0);
});
