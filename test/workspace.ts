import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the repository. */
export const root: string = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/** What the checks read of a package.json. */
interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly type?: string;
  readonly license?: string;
  readonly description?: string;
  readonly sideEffects?: boolean;
  readonly files?: readonly string[];
  readonly engines?: { readonly node?: string };
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly publishConfig?: { readonly access?: string; readonly exports?: Manifest['exports'] };
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** One folder of the workspace that has a package.json. */
export interface WorkspacePackage {
  /** From the root of the repository, with `/`: `packages/registry`. */
  readonly folder: string;
  readonly manifest: Manifest;
}

export const readJson = (path: string): unknown =>
  JSON.parse(readFileSync(join(root, path), 'utf8'));

/** The packages in a folder of the workspace, sorted; none if the folder does not exist. */
export function packagesIn(parent: string): readonly WorkspacePackage[] {
  if (!existsSync(join(root, parent))) return [];
  return readdirSync(join(root, parent))
    .map((name) => `${parent}/${name}`)
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .toSorted()
    .map((folder) => ({ folder, manifest: readJson(`${folder}/package.json`) as Manifest }));
}

/** The published packages: everything in `packages`. */
export const published: readonly WorkspacePackage[] = packagesIn('packages');

/** The source file of every entry of a package: `.` and its subpaths, without `./package.json`. */
export function sourceEntries({ folder, manifest }: WorkspacePackage): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) =>
      typeof target === 'object' && target['@patchbay/source'] !== undefined
        ? [[subpath, join(folder, target['@patchbay/source']).replaceAll(sep, '/')]]
        : [],
    ),
  );
}

/** Names (no paths) that git ignores: the same line decides for git and for the checks. */
const ignored: readonly RegExp[] = readFileSync(join(root, '.gitignore'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .concat('.git')
  .map((name) => new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}$`));

/** Every file below a folder that git does not ignore, from the root of the repository, with `/`. */
export function filesBelow(
  folder: string,
  accept: (name: string) => boolean = () => true,
): string[] {
  const start = join(root, folder);
  if (!existsSync(start)) return [];
  return readdirSync(start, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      if (ignored.some((name) => name.test(entry.name))) return [];
      const path = relative(root, join(start, entry.name)).replaceAll(sep, '/');
      if (entry.isDirectory()) return filesBelow(path, accept);
      return entry.isFile() && accept(entry.name) ? [path] : [];
    });
}

/** The TypeScript sources of a package. */
export const sourcesOf = ({ folder }: WorkspacePackage): string[] =>
  filesBelow(`${folder}/src`, (name) => name.endsWith('.ts'));
