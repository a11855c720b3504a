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

/** Everything that calls tools of a server, on the path of the official SDK: with the same results as on our own. */
const sdkCalls: Plugin = {
  name: 'calls by the SDK',
  enforce: 'pre',
  transform: (code, id) =>
    id.endsWith('/connection-pool/src/connection-pool.ts')
      ? code.replace("callPath ?? 'own'", "callPath ?? 'sdk'")
      : undefined,
};

/** The tests of both adapters. The matrix has a second axis, Node: start this with each of them. */
const adapters = (versions: 'lowest' | 'newest', plugins: Plugin[], exclude: string[]) => ({
  resolve,
  ssr,
  plugins,
  test: {
    name: `adapters on the ${versions} versions of their frameworks, Node ${process.version}`,
    include: ['packages/{ai-sdk,langchain}/test/**/*.test.ts'],
    exclude: ['**/*.long.test.ts', '**/node_modules/**', ...exclude],
    testTimeout: 60_000,
  },
});

export default defineConfig({
  test: {
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'long',
          include: ['packages/*', 'apps/*', 'bench', 'docs', '.'].map(
            (at) => `${at}/test/**/*.long.test.ts`,
          ),
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
      {
        resolve,
        ssr,
        plugins: [sdkCalls],
        test: {
          name: 'calls by the SDK',
          include: ['packages/{connection-pool,mcp}/test/**/*.test.ts'],
          exclude: ['**/*.long.test.ts', '**/*.alone.test.ts', '**/node_modules/**'],
          testTimeout: 60_000,
        },
      },
      adapters('newest', [], []),
      adapters(
        'lowest',
        [lowest],
        [
          // Start the compiler, which knows nothing of this.
          '**/types-of-*.test.ts',
          // What these are about needs newer versions.
          '**/newer-frameworks.test.ts',
          '**/deepagents.test.ts',
          '**/wire-snapshots.test.ts',
        ],
      ),
    ],
  },
});
