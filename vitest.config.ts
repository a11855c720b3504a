import { defineConfig } from 'vitest/config';

/** Tests run on sources: every package offers them under this condition, so nothing has to be built first. */
const conditions = ['@patchbay/source'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: [
      'packages/*/test/**/*.test.ts',
      'apps/*/test/**/*.test.ts',
      'bench/test/**/*.test.ts',
      'docs/test/**/*.test.ts',
      'test/**/*.test.ts',
    ],
    exclude: ['**/*.long.test.ts', '**/node_modules/**'],
    testTimeout: 20_000,
    // Most of the time is spent waiting for processes: a core left idle for the runner is a core wasted.
    maxWorkers: '100%',
    typecheck: {
      enabled: true,
      include: ['packages/*/test/**/*.test-d.ts'],
      tsconfig: './tsconfig.json',
    },
  },
});
