// @ts-check
// What a release would publish, used as a reader of the documentation does: every program on a page that is marked as one
// (```ts run) and its tarballs, on each Node that is found. Part of `pnpm release:dry`.
// Other versions of Node are named by PATCHBAY_NODES, a list of programs as in PATH.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

import { transform } from 'esbuild';

import { install, readManifest, root, testedVersion } from './consumer-project.mjs';
import { blocksOf, readmes } from './readme-blocks.mjs';
import { run } from './run.mjs';
import { packAll } from './tarball.mjs';

const WANTED = ['20', '22', '24', '26'];

const work = realpathSync(mkdtempSync(join(tmpdir(), 'patchbay-release-')));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

const paths = new Map([...(await packAll(work))].map(([name, { path }]) => [name, path]));
const project = join(work, 'project');
const dependencies = Object.keys(readManifest(join(root, 'docs')).dependencies ?? {});
await install(
  project,
  Object.fromEntries(
    dependencies.map((name) => [
      name,
      paths.has(name) ? `file:${paths.get(name)}` : testedVersion('docs', name),
    ]),
  ),
  paths,
);

const programs = readmes(root)
  .flatMap((file) => blocksOf(root, file))
  .filter((block) => block.run);
for (const [at, { code }] of programs.entries()) {
  // Node 20 and 22 know no `await using`.
  const { code: plain } = await transform(code, { loader: 'ts', target: 'node20', format: 'esm' });
  writeFileSync(join(project, `program-${at}.mjs`), plain);
}
mkdirSync(join(project, 'home'));

const nodes = new Map();
for (const node of [process.execPath, ...(process.env['PATCHBAY_NODES'] ?? '').split(delimiter)]) {
  if (node === '') continue;
  const version = (await run(node, ['-p', 'process.versions.node'])).trim();
  nodes.set(version.split('.')[0], { node, version });
}
for (const major of WANTED) {
  const found = nodes.get(major);
  if (found === undefined) {
    console.log(`skip Node ${major}: not found; name it in PATCHBAY_NODES`);
    continue;
  }
  for (const [at, { file, line }] of programs.entries()) {
    try {
      await run(found.node, [`program-${at}.mjs`], { cwd: project, timeout: 60_000 });
      console.log(`ok   Node ${found.version} ${file}:${line}`);
    } catch (error) {
      console.log(`FAIL Node ${found.version} ${file}:${line}\n${String(error)}`);
      process.exitCode = 1;
    }
  }
}
if (programs.length === 0) {
  console.log('FAIL no page has a program');
  process.exitCode = 1;
}
