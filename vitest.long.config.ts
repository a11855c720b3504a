import { defineConfig } from 'vitest/config';

/** Soaks, matrices and large corpora: minutes, not seconds. Run before a release and before an issue is closed. */
const conditions = ['@patchbay/source'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ['packages/*/test/**/*.long.test.ts', 'test/**/*.long.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    fileParallelism: false,
  },
});
