// @ts-check
// Prints what each package weighs when it is installed alone, with the peers that it needs, and how long its root entry
// takes to load: `pnpm sizes`, which builds first. Peers, and what one would use instead, are measured beside, alone.
import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { install, installed, testedVersion } from './consumer-project.mjs';
import { OURS, packages, peersOf } from './package-family.mjs';
import { run } from './run.mjs';
import { packAll } from './tarball.mjs';

const RUNS = 5;
/** What a program would use without ours. */
const BESIDE = ['@ai-sdk/mcp', '@langchain/mcp-adapters'];
const work = realpathSync(mkdtempSync(join(tmpdir(), 'patchbay-sizes-')));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

const paths = new Map([...(await packAll(work))].map(([name, { path }]) => [name, path]));
/** @type {Record<string, string>[]} */
const rows = [];
/** @type {Record<string, string>} */
const choices = {};

for (const name of packages.keys()) {
  const peers = peersOf(name, { optional: false });
  Object.assign(choices, peers);
  rows.push(
    await measure(name, { [name]: `file:${paths.get(name)}`, ...peers }, Object.keys(peers)),
  );
}
for (const peer of BESIDE) choices[peer] = testedVersion('docs', peer);
for (const [peer, version] of Object.entries(choices))
  rows.push(await measure(peer, { [peer]: version }, []));
console.table(rows);

/**
 * @param {string} name
 * @param {Record<string, string>} dependencies
 * @param {readonly string[]} peers
 */
async function measure(name, dependencies, peers) {
  const project = join(work, name.replaceAll(/\W+/gu, '-'));
  await install(project, dependencies, paths);
  const modules = join(project, 'node_modules');
  writeFileSync(
    join(project, 'load.mjs'),
    'const start = performance.now(); await import(process.argv[2]); console.log(performance.now() - start);',
  );
  const times = [];
  for (let at = 0; at < RUNS; at++)
    times.push(Number(await run(process.execPath, ['load.mjs', name], { cwd: project })));
  return {
    package: name,
    'with peers': peers.join(' '),
    packages: String(installed(project).length),
    'own KiB': kib(join(modules, name)),
    'installed KiB': kib(modules),
    'import ms': (times.toSorted((a, b) => a - b)[RUNS >> 1] ?? Number.NaN).toFixed(0),
    ours: name.startsWith(OURS) ? 'yes' : '',
  };
}

/** @param {string} folder */
function kib(folder) {
  const bytes = readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
  return (bytes / 1024).toFixed(0);
}
