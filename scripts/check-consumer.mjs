// @ts-check
// Installs what would be published into empty projects, as a user does: every package alone, all of them together for
// the code in the READMEs, and the demo. Run it with `pnpm check:consumer`, which builds first.
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  install,
  installed,
  readManifest,
  root,
  testedVersion,
  typeErrors,
} from './consumer-project.mjs';
import { companyFaults, OURS, packages, peersOf } from './package-family.mjs';
import { blocksOf, readmes } from './readme-blocks.mjs';
import { run } from './run.mjs';
import { packAll, tarballFaults } from './tarball.mjs';

/** Of a name that an entry offers: what is offered must not have been renamed, errors are known by the names of their classes. */
const NAMED =
  "const named = (entry) => Object.entries(entry).map(([name, value]) => typeof value !== 'function' || ['', name].includes(value.name) ? name : `${name} is called ${value.name}`).sort().join();";
/** Two ways to load entries; each prints the names that every entry offers. */
const LOADERS = {
  'load.mjs': `${NAMED} for (const entry of process.argv.slice(2)) console.log(entry, named(await import(entry)));`,
  'load.cjs': `${NAMED} for (const entry of process.argv.slice(2)) console.log(entry, named(require(entry)));`,
};

/**
 * Loads entries by `import` and by `require`, each in a process of its own that must end by itself.
 * @param {string} project
 * @param {readonly string[]} entries
 * @returns {Promise<readonly string[]>}
 */
async function loadFaults(project, entries) {
  const said = await Promise.all(
    Object.entries(LOADERS).map(async ([file, code]) => {
      writeFileSync(join(project, file), code);
      return await run(process.execPath, [file, ...entries], { cwd: project, timeout: 30_000 });
    }),
  );
  const renamed = said[0]?.split('\n').filter((line) => line.includes(' is called ')) ?? [];
  return [
    ...renamed.map((line) => `renamed when it was put together: ${line}`),
    ...(said[0] === said[1] ? [] : [`import and require differ:\n${said.join('\n')}`]),
  ];
}

/**
 * One package alone in an empty project.
 * @param {string} name
 * @param {Check} check
 * @returns {Promise<readonly string[]>}
 */
async function checkPackage(name, { work, tarballs, paths }) {
  const project = join(work, name.slice(OURS.length));
  const alone = { [name]: `file:${paths.get(name)}`, ...peersOf(name, { optional: false }) };
  const entries = Object.keys(packages.get(name)?.manifest.exports ?? {})
    .filter((key) => !key.endsWith('.json')) // data
    .map((key) => name + key.slice(1));
  const optional = peersOf(name, { optional: true });

  await install(project, alone, paths);
  const faults = [
    ...companyFaults(name, installed(project)),
    ...tarballFaults(project, name, tarballs.get(name)?.files ?? []),
  ];
  // The root entry must do without the optional peers; the others may be there for them.
  if (Object.keys(optional).length > 0) {
    faults.push(...(await loadFaults(project, [name])));
    await install(project, { ...alone, ...optional }, paths);
  }
  faults.push(...(await loadFaults(project, entries)));
  const lines = entries.map((entry, index) => `import * as entry${index} from '${entry}';`);
  const used = `export const used: readonly object[] = [${entries.map((_, index) => `entry${index}`).join()}];`;
  writeFileSync(join(project, 'consumer.ts'), [...lines, used].join('\n'));
  return [...faults, ...(await typeErrors(project, { libraries: true }))];
}

/**
 * Dependencies of a private folder of the workspace, with ours from the tarballs.
 * @param {string} folder
 * @param {Check['paths']} paths
 */
const dependenciesOf = (folder, paths) =>
  Object.fromEntries(
    Object.keys(readManifest(join(root, folder)).dependencies ?? {}).map((name) => [
      name,
      paths.has(name) ? `file:${paths.get(name)}` : testedVersion(folder, name),
    ]),
  );

/**
 * The code of every README and the example programs, against the published declarations.
 * @param {Check} check
 */
async function checkExamples({ work, paths }) {
  const project = join(work, 'docs');
  await install(project, dependenciesOf('docs', paths), paths);
  const blocks = readmes(root).flatMap((file) => blocksOf(root, file));
  for (const { file, line, code } of blocks)
    writeFileSync(join(project, `${file.replaceAll(/[/.]/g, '-')}-line-${line}.ts`), code);
  const programs = join(root, 'docs/programs');
  const files = existsSync(programs) ? readdirSync(programs) : [];
  for (const file of files) cpSync(join(programs, file), join(project, file));
  if (blocks.length + files.length === 0) return [];
  return await typeErrors(project, { libraries: false });
}

/**
 * The demo on the published packages: its `files` (`dist`), its `dependencies`, and its `main`.
 * @param {Check} check
 */
async function checkDemo({ work, paths }) {
  const project = join(work, 'demo');
  const { files = ['dist'], main = 'dist/main.js' } = readManifest(join(root, 'apps/demo'));
  await install(project, dependenciesOf('apps/demo', paths), paths);
  for (const file of files)
    cpSync(join(root, 'apps/demo', file), join(project, file), { recursive: true });
  await run(process.execPath, [main], { cwd: project });
  return [];
}

/** @typedef {{ work: string, tarballs: Awaited<ReturnType<typeof packAll>>, paths: ReadonlyMap<string, string> }} Check */

const work = realpathSync(mkdtempSync(join(tmpdir(), 'patchbay-consumer-')));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const tarballs = await packAll(work);
const check = {
  work,
  tarballs,
  paths: new Map([...tarballs].map(([name, { path }]) => [name, path])),
};
/** @type {[string, () => Promise<readonly string[]>][]} */
const jobs = [...packages.keys()].map((name) => [name, () => checkPackage(name, check)]);
jobs.push(['READMEs and programs', () => checkExamples(check)]);
if (existsSync(join(root, 'apps/demo/package.json'))) jobs.push(['demo', () => checkDemo(check)]);

/** Works on what is left, until nothing is. */
async function worker() {
  for (let job = jobs.pop(); job !== undefined; job = jobs.pop()) {
    const [name, start] = job;
    const began = performance.now();
    const faults = await start().catch((error) => [String(error?.message ?? error)]);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`);
    for (const fault of faults) console.log(`     ${fault.replaceAll('\n', '\n     ')}`);
    if (faults.length > 0) process.exitCode = 1;
  }
}
await Promise.all([worker(), worker()]);
