// @ts-check
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

/** @param {string} file A file of `dist`. */
const sourceOf = (file) => file.replace(/^dist/, 'src').replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts');

/**
 * What is wrong with a tarball itself.
 * @param {string} project Where it is installed.
 * @param {string} name
 * @param {readonly string[]} files What it holds.
 * @returns {readonly string[]}
 */
export function tarballFaults(project, name, files) {
  const manifest = readManifest(join(project, 'node_modules', name));
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
      .filter((file) => !files.includes(sourceOf(file)))
      .map((file) => `${file} has no source (any more): remove dist and build again`),
  ];
}
