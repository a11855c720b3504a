import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** What of a package in `packages` is published. */
const PUBLISHED = ['dist', 'src', 'package.json', 'README.md', 'LICENSE'];

/**
 * Bytes on disk of packages and everything they depend on, each once; peers are not counted, the user has them anyway.
 * Packages are looked up from `from` as Node does.
 */
export function installedSize(names: readonly string[], from: string): number {
  const seen = new Set<string>();
  const add = (name: string, importer: string): number => {
    const folder = folderOf(name, importer);
    if (seen.has(folder)) return 0;
    seen.add(folder);
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
    return Object.keys(manifest.dependencies ?? {}).reduce(
      (sum, dependency) => sum + add(dependency, folder),
      sizeOf(folder),
    );
  };
  return names.reduce((sum, name) => sum + add(name, from), 0);
}

function folderOf(name: string, from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(found)) return realpathSync(found);
    if (folder === dirname(folder))
      throw new Error(`${name} is not installed where ${from} finds it`);
  }
}

function sizeOf(folder: string): number {
  const ours = !folder.includes(`${sep}node_modules${sep}`);
  return readdirSync(folder)
    .filter((name) => name !== 'node_modules' && (!ours || PUBLISHED.includes(name)))
    .reduce((sum, name) => sum + bytesOf(join(folder, name)), 0);
}

function bytesOf(path: string): number {
  const found = lstatSync(path);
  if (!found.isDirectory()) return path.endsWith('.tsbuildinfo') ? 0 : found.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0);
}
