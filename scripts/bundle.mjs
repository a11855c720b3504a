// @ts-check
// Makes the JavaScript of the package in the current folder: one readable file for each entry, and one for what is shared
// or only loaded when it is needed, straight from its sources. Runs after `tsc -b`, which checks and makes the declarations.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { build } from 'esbuild';

const OUT = 'dist';

/** @type {{ exports: Record<string, string | Record<string, string>> }} */
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const entries = Object.values(exports).filter((target) => typeof target === 'object');

// A chunk that is made no more would be published with the others.
for (const file of readdirSync(OUT)) if (/\.js(\.map)?$/u.test(file)) rmSync(join(OUT, file));

await build({
  entryPoints: entries.map((target) => target['@patchbay/source'] ?? ''),
  outdir: OUT,
  chunkNames: '[name]-[hash]',
  tsconfig: 'tsconfig.build.json',
  bundle: true,
  splitting: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  sourcemap: 'linked',
  // The sources are published beside it.
  sourcesContent: false,
  logLevel: 'warning',
});
