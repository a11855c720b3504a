import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { createContext, runInContext } from 'node:vm';

import { build, type BuildOptions } from 'esbuild';
import { describe, expect, it } from 'vitest';

import { importsOf } from './source-file.ts';
import { published, root, sourceEntries, sourcesOf } from './workspace.ts';

/** Packages that also run where the modules of Node do not exist: browsers, workers, edge functions. */
const EDGE = ['protocols', 'registry', 'adapter-kit', 'ai-sdk', 'langchain'];

const edge = published.filter(({ folder }) => EDGE.includes(folder.replace('packages/', '')));

/** The two families of runtimes without Node's modules, as bundlers for them ask for code. */
const RUNTIMES: Readonly<Record<string, BuildOptions>> = {
  browser: { platform: 'browser', conditions: ['@patchbay/source', 'browser'] },
  workerd: {
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['@patchbay/source', 'workerd', 'worker', 'browser'],
  },
};

/** Bundles an entry as an application would, and lists every import of a module of Node, with the file it is in. */
async function bundle(entry: string, peers: readonly string[], runtime: BuildOptions) {
  const builtins: string[] = [];
  const result = await build({
    ...runtime,
    entryPoints: [join(root, entry)],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'bundled',
    external: peers.flatMap((peer) => [peer, `${peer}/*`]),
    logLevel: 'silent',
    plugins: [
      {
        name: 'node-modules',
        setup: (plugin) =>
          plugin.onResolve({ filter: /.*/ }, ({ path, importer }) => {
            if (!isBuiltin(path)) return undefined;
            builtins.push(`${importer.replace(`${root}/`, '')} imports ${path}`);
            return { path, external: true };
          }),
      },
    ],
  });
  return { builtins, code: result.outputFiles[0]?.text ?? '' };
}

it.each(edge.map((pkg) => [pkg.manifest.name, pkg] as const))(
  'no source of %s names a module of Node, not even for a type',
  (_, pkg) => {
    const found = sourcesOf(pkg)
      .flatMap((file) => importsOf(file))
      .filter(({ specifier }) => isBuiltin(specifier));
    expect(found).toEqual([]);
  },
);

describe.each(Object.entries(RUNTIMES))('bundled for %s', (_, runtime) => {
  const entries = edge.flatMap((pkg) =>
    [...sourceEntries(pkg)].map(([subpath, source]) => ({
      name: join(pkg.manifest.name, subpath),
      source,
      peers: Object.keys(pkg.manifest.peerDependencies ?? {}),
    })),
  );

  it.each(entries)('$name needs nothing of Node', async ({ source, peers }) => {
    expect((await bundle(source, peers, runtime)).builtins).toEqual([]);
  });

  it.each(entries.filter(({ peers }) => peers.length === 0))(
    '$name loads with the standard globals alone',
    async ({ source, peers }) => {
      const { code } = await bundle(source, peers, runtime);
      // A new context has the language and nothing else; these exist in every runtime (WinterTC Minimum Common API).
      const context = createContext({
        AbortController,
        AbortSignal,
        TextDecoder,
        TextEncoder,
        URL,
      });
      expect(typeof runInContext(`${code}; bundled`, context)).toBe('object');
    },
  );
});
