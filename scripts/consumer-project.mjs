// @ts-check
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { run } from './run.mjs';

/**
 * What the check reads of a package.json.
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {string} [main]
 * @property {readonly string[]} [files]
 * @property {Readonly<Record<string, string | Readonly<Record<string, string>>>>} [exports]
 * @property {Readonly<Record<string, string>>} [dependencies]
 * @property {Readonly<Record<string, string>>} [devDependencies]
 * @property {Readonly<Record<string, string>>} [peerDependencies]
 * @property {Readonly<Record<string, { optional?: boolean }>>} [peerDependenciesMeta]
 */

/** The folder of the repository, without a slash at its end. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/**
 * @param {string} folder
 * @returns {Manifest}
 */
export const readManifest = (folder) =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/**
 * The exact version of a dependency that a folder of the workspace was tested with, as an npm specifier.
 * @param {string} folder
 * @param {string} dependency
 */
export function testedVersion(folder, dependency) {
  const { name, version } = readManifest(join(root, folder, 'node_modules', dependency));
  return name === dependency ? version : `npm:${name}@${version}`;
}

/**
 * An npm project outside the repository. Packages of the repository come from their tarballs, also those that
 * are dependencies of dependencies.
 * @param {string} folder
 * @param {Readonly<Record<string, string>>} dependencies Names and npm specifiers.
 * @param {ReadonlyMap<string, string>} tarballs The packed packages by name.
 */
export async function install(folder, dependencies, tarballs) {
  const files = Object.fromEntries([...tarballs].map(([name, path]) => [name, `file:${path}`]));
  const manifest = {
    name: 'consumer',
    private: true,
    type: 'module',
    dependencies,
    overrides: files,
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest, undefined, 2));
  const quiet = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];
  // With --prefix it does not matter from where, and by which package manager, this script was started.
  const args = ['install', '--prefix', folder, '--ignore-scripts', '--prefer-offline', ...quiet];
  await run('npm', args, { cwd: folder, timeout: 240_000 });
}

/**
 * The names of everything that is installed in a project, at any depth.
 * @param {string} folder
 * @returns {readonly string[]}
 */
export function installed(folder) {
  const lock = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'));
  return Object.keys(lock.packages).map((path) => path.replace(/^.*node_modules\//, ''));
}

/** How a user's compiler may be set: the strictest of one kind, the usual of the other. */
const COMPILERS = {
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext', exactOptionalPropertyTypes: true },
  bundler: { module: 'esnext', moduleResolution: 'bundler', exactOptionalPropertyTypes: false },
};

/**
 * Type-checks all `.ts` files at the top of a project with both kinds of module resolution, and returns the errors.
 * @param {string} folder
 * @param {{ libraries: boolean }} options `libraries`: also check the declarations of the packages. Only what is found
 *   in ours counts.
 * @returns {Promise<readonly string[]>}
 */
export async function typeErrors(folder, { libraries }) {
  const bin = join(root, 'node_modules/typescript/bin/tsc');
  /** @type {string[]} */
  const errors = [];
  for (const [name, options] of Object.entries(COMPILERS)) {
    const project = join(folder, `tsconfig.${name}.json`);
    const compilerOptions = {
      target: 'es2022',
      lib: ['es2023', 'esnext.disposable'],
      moduleDetection: 'force',
      strict: true,
      noEmit: true,
      allowImportingTsExtensions: true,
      skipLibCheck: !libraries,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
      ...options,
    };
    writeFileSync(project, JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    const args = [bin, '-p', project, '--pretty', 'false'];
    const said = await run(process.execPath, args, { cwd: folder, failing: true });
    for (const line of said.split('\n').filter((text) => /error TS\d+:/.test(text))) {
      const foreign = line.includes('node_modules/') && !line.includes('node_modules/@patchbay/');
      if (!foreign) errors.push(`${name}: ${line}`);
    }
  }
  return errors;
}
