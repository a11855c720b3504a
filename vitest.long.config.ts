import { fileURLToPath } from 'node:url';

import { defineConfig, type Plugin } from 'vitest/config';

/** Soaks, matrices and large corpora: minutes, not seconds. Run before a release and before an issue is closed. */
const conditions = ['@patchbay/source'];
const resolve = { conditions };
const ssr = { resolve: { conditions, externalConditions: conditions } };

/** The frameworks as `test/lowest` has them, instead of the ones of each package. */
const LOWEST = fileURLToPath(new URL('test/lowest/index.js', import.meta.url));
const FRAMEWORK = /^(?:ai|ai6|langchain|@langchain\/core|@langchain\/langgraph)(?:\/|$)/u;
const lowest: Plugin = {
  name: 'lowest',
  enforce: 'pre',
  resolveId(source, _importer, options) {
    return FRAMEWORK.test(source) ? this.resolve(source, LOWEST, options) : undefined;
  },
};

export default defineConfig({
  test: {
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'long',
          include: ['packages/*/test/**/*.long.test.ts', 'test/**/*.long.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
      {
        resolve,
        ssr,
        plugins: [lowest],
        test: {
          name: `adapters on the lowest versions of their frameworks, Node ${process.version}`,
          include: ['packages/{ai-sdk,langchain}/test/**/*.test.ts'],
          exclude: [
            '**/*.long.test.ts',
            '**/node_modules/**',
            // Starts the compiler, which knows nothing of this.
            '**/types-of-ai6.test.ts',
            // What these are about needs newer versions.
            '**/newer-frameworks.test.ts',
            '**/deepagents.test.ts',
            '**/wire-snapshots.test.ts',
          ],
          testTimeout: 60_000,
        },
      },
    ],
  },
});
