import { mkdtemp, rmdir } from 'node:fs/promises';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

/** A program of `fixtures/` as one file that plain Node runs: for what ends a whole program. */
export async function bundled(fixture: string) {
  const folder = await mkdtemp(join(tmpdir(), 'patchbay-program-'));
  const file = join(folder, 'program.mjs');
  try {
    await build({
      entryPoints: [fileURLToPath(new URL(`fixtures/${fixture}`, import.meta.url))],
      outfile: file,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      conditions: ['@patchbay/source'],
      banner: {
        js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`,
      },
      logLevel: 'error',
    });
  } catch (error) {
    await rmdir(folder);
    throw error;
  }
  return { file, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}
