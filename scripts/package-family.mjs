// @ts-check
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { readManifest, root, testedVersion } from './consumer-project.mjs';

/** How the names of our packages begin. */
export const OURS = '@patchbay/';

/** The published packages by name: their folder, from the root of the repository, and their package.json. */
export const packages = new Map(
  readdirSync(join(root, 'packages'))
    .map((name) => `packages/${name}`)
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .map((folder) => ({ folder, manifest: readManifest(join(root, folder)) }))
    .map((pkg) => [pkg.manifest.name, pkg]),
);

/** Frameworks and clients that a user chooses. Nobody gets one who did not ask for it. */
const choices = [...packages.values()].flatMap(({ manifest }) =>
  Object.keys(manifest.peerDependencies ?? {}),
);

/**
 * A package, and those of this repository that come with it.
 * @param {string} name
 * @param {Set<string>} [found]
 * @returns {Set<string>}
 */
function family(name, found = new Set()) {
  found.add(name);
  for (const next of Object.keys(packages.get(name)?.manifest.dependencies ?? {})) {
    if (next.startsWith(OURS) && !found.has(next)) family(next, found);
  }
  return found;
}

/** @param {string} name */
const members = (name) => [...family(name)].flatMap((member) => packages.get(member) ?? []);

/**
 * The peers of a package and its family, in the versions that they were tested with.
 * @param {string} name
 * @param {{ optional: boolean }} which
 * @returns {Record<string, string>}
 */
export function peersOf(name, { optional }) {
  const peers = members(name).flatMap(({ folder, manifest }) =>
    Object.keys(manifest.peerDependencies ?? {})
      .filter((peer) => (manifest.peerDependenciesMeta?.[peer]?.optional === true) === optional)
      .map((peer) => [peer, testedVersion(folder, peer)]),
  );
  return Object.fromEntries(peers);
}

/**
 * What came with a package and should not have, or the reverse.
 * @param {string} name
 * @param {readonly string[]} found
 * @returns {readonly string[]}
 */
export function companyFaults(name, found) {
  const required = Object.keys(peersOf(name, { optional: false }));
  const expected = family(name);
  const libraries = members(name).some(({ manifest }) =>
    Object.keys(manifest.dependencies ?? {}).some((dependency) => !dependency.startsWith(OURS)),
  );
  return [
    ...[...expected].filter((one) => !found.includes(one)).map((one) => `${one} is not installed`),
    ...found
      .filter((one) => one.startsWith(OURS) && !expected.has(one))
      .map((one) => `brings ${one}`),
    ...choices
      .filter((one) => found.includes(one) && !required.includes(one))
      .map((one) => `brings ${one}, which is for the user to choose`),
    ...(libraries || required.length > 0 ? [] : found)
      .filter((one) => !one.startsWith(OURS))
      .map((one) => `brings ${one}, though it declares no dependency`),
  ];
}
