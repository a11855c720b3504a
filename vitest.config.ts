import { availableParallelism } from 'node:os';

import { defineConfig } from 'vitest/config';

/** Tests run on sources: every package offers them under this condition, so nothing has to be built first. */
const conditions = ['@patchbay/source'];
const resolve = { conditions };
const ssr = { resolve: { conditions, externalConditions: conditions } };

const folders = ['packages/*', 'apps/*', 'examples/*', 'bench', 'docs', '.'];
/** Tests that change what modules see while they are loaded. */
const ALONE = '**/*.alone.test.ts';

export default defineConfig({
  test: {
    // Much of the time is spent waiting for processes: with a worker for each core, cores are idle.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'tests',
          include: folders.map((folder) => `${folder}/test/**/*.test.ts`),
          exclude: ['**/*.long.test.ts', ALONE, '**/node_modules/**'],
          testTimeout: 20_000,
          // Frameworks are loaded once for each worker, not once for each file.
          isolate: false,
          typecheck: {
            enabled: true,
            include: ['packages/*/test/**/*.test-d.ts'],
            tsconfig: './tsconfig.types.json',
          },
        },
      },
      {
        resolve,
        ssr,
        test: {
          name: 'alone',
          include: folders.map((folder) => `${folder}/test/${ALONE}`),
          exclude: ['**/node_modules/**'],
        },
      },
    ],
  },
});
