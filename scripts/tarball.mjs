// @ts-check
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { readManifest, root } from './consumer-project.mjs';
import { run } from './run.mjs';

/**
 * A package as it would be published.
 * @typedef {{ path: string, files: readonly string[] }} Tarball
 */

/**
 * Packs every package of the repository into a folder.
 * @param {string} into
 * @returns {Promise<ReadonlyMap<string, Tarball>>} By name.
 */
export async function packAll(into) {
  const args = ['-r', '--filter', './packages/*', 'pack', '--pack-destination', into, '--json'];
  /** @type {{ name: string, filename: string, files: { path: string }[] }[]} */
  const packed = JSON.parse(await run('pnpm', args, { cwd: root }));
  return new Map(
    packed.map(({ name, filename, files }) => [
      name,
      { path: filename, files: files.map((file) => file.path) },
    ]),
  );
}

/**
 * The sources that a file of `dist` was made of: of a script, those that its map names.
 * @param {string} folder
 * @param {string} file
 * @returns {readonly string[]}
 */
function sourcesOf(folder, file) {
  if (!/\.js(\.map)?$/u.test(file))
    return [file.replace(/^dist/u, 'src').replace(/\.d\.ts(\.map)?$/u, '.ts')];
  const map = join(folder, file.replace(/(\.map)?$/u, '.map'));
  /** @type {{ sources: string[] }} */
  const { sources } = existsSync(map)
    ? JSON.parse(readFileSync(map, 'utf8'))
    : { sources: [`../${file}, which has no map`] };
  return sources.map((source) => join('dist', source));
}

/**
 * What is wrong with a tarball itself.
 * @param {string} project Where it is installed.
 * @param {string} name
 * @param {readonly string[]} files What it holds.
 * @returns {readonly string[]}
 */
export function tarballFaults(project, name, files) {
  const folder = join(project, 'node_modules', name);
  const manifest = readManifest(folder);
  const text = JSON.stringify(manifest);
  const targets = Object.values(manifest.exports ?? {}).flatMap((target) =>
    typeof target === 'string' ? [target] : Object.values(target),
  );
  return [
    ...['README.md', 'LICENSE']
      .filter((file) => !files.includes(file))
      .map((file) => `${file} is missing from the tarball`),
    ...['workspace:', 'catalog:', '@patchbay/source']
      .filter((word) => text.includes(word))
      .map((word) => `the published package.json contains "${word}"`),
    ...targets
      .filter((target) => !files.includes(target.slice('./'.length)))
      .map((target) => `exports names ${target}, which is not in the tarball`),
    ...files
      .filter((file) => /^(test|bench)\/|\.tsbuildinfo$/.test(file))
      .map((file) => `${file} does not belong into the tarball`),
    ...files
      .filter((file) => file.startsWith('dist/'))
      .flatMap((file) => sourcesOf(folder, file).map((source) => ({ file, source })))
      .filter(({ source }) => !files.includes(source))
      .map(({ file, source }) => `${file} is made of ${source}, which is not in the tarball`),
  ];
}
