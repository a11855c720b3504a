// @ts-check
// Makes a capability package from templates/capability: `pnpm new:capability NAME`. It writes packages/NAME, its row in
// test/architecture.test.ts, its dependency in docs/package.json and a changeset, and then links and formats them.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { root } from './consumer-project.mjs';
import { run } from './run.mjs';

const TEMPLATE = join(root, 'templates/capability');

const name = process.argv[2] ?? '';
const folder = `packages/${name}`;
if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/u.test(name)) {
  stop('Say the name of the package, in lower case with dashes: pnpm new:capability my-service');
}
if (name === 'capability-name') stop('"capability-name" is what the template says; take another.');
if (existsSync(join(root, folder))) stop(`${folder} is already there. Take another name.`);

const pascal = name.replaceAll(/(?:^|-)([a-z0-9])/gu, (_, letter) => letter.toUpperCase());
/** @param {string} text */
const fill = (text) =>
  text.replaceAll('capability-name', name).replaceAll('CapabilityName', pascal);

for (const file of filesBelow(TEMPLATE)) {
  const to = join(root, folder, fill(file));
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, fill(readFileSync(join(TEMPLATE, file), 'utf8')));
}

edit('test/architecture.test.ts', (text) =>
  text.replace(
    /(const TABLE[^]*?\n)\};/u,
    (_, table) => `${table}  '${name}': { internal: ['protocols'] },\n};`,
  ),
);
edit('docs/package.json', (text) => {
  const manifest = JSON.parse(text);
  const all = { ...manifest.dependencies, [`@patchbay/${name}`]: 'workspace:^' };
  manifest.dependencies = Object.fromEntries(
    Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
});
writeFileSync(
  join(root, `.changeset/${name}-first.md`),
  `---\n'@patchbay/${name}': minor\n---\n\nFirst release of \`@patchbay/${name}\`: say here what it is for.\n`,
);

await run('pnpm', ['install', '--prefer-offline', '--no-frozen-lockfile'], { cwd: root });
await run('pnpm', ['exec', 'oxfmt', folder, 'test/architecture.test.ts'], { cwd: root });
await run(process.execPath, ['scripts/suites-page.mjs'], { cwd: root });
await run(process.execPath, ['scripts/api.mjs'], { cwd: root });
await run('pnpm', ['exec', 'oxfmt', 'docs/suites.md'], { cwd: root });
console.log(`${folder} is there. Next: pnpm test ${folder}`);

/**
 * @param {string} file
 * @param {(text: string) => string} change
 */
function edit(file, change) {
  const path = join(root, file);
  const text = readFileSync(path, 'utf8');
  const next = change(text);
  if (next === text)
    stop(`${file} does not look as this script expects; nothing was written to it.`);
  writeFileSync(path, next);
}

/**
 * Files of the template, from its folder.
 * @param {string} start
 * @returns {string[]}
 */
function filesBelow(start, below = '') {
  return readdirSync(join(start, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (['node_modules', 'dist'].includes(entry.name)) return [];
    return entry.isDirectory() ? filesBelow(start, path) : [path];
  });
}

/**
 * @param {string} message
 * @returns {never}
 */
function stop(message) {
  console.error(message);
  process.exit(1);
}
