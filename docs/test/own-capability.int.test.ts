import { vi } from 'vitest';

// The program registers its tests as its reader's test file would; what it only declares is here.
vi.stubGlobal('fakeService', () => ({
  jobs: async () => [{ name: 'nightly' }, { name: 'docs' }],
  stop: async () => undefined,
  onChange: () => () => undefined,
}));

await import('../programs/09-test.ts');
