import { existsSync, readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';

import { describe, expect, it } from 'vitest';

import {
  importsOf,
  notNamedExports,
  packageOf,
  reassignableBindings,
  type Import,
} from './source-file.ts';
import {
  filesBelow,
  packagesIn,
  published,
  readJson,
  root,
  sourceEntries,
  sourcesOf,
  type WorkspacePackage,
} from './workspace.ts';

interface Row {
  /** Packages of this repository that it may depend on. A star: everybody knows `protocols`, hardly anybody more. */
  readonly internal: readonly string[];
  /** Third-party packages that it may bring along. A new one is a decision; it is written here. */
  readonly libraries?: readonly string[];
  /** What the user of the package installs. */
  readonly peers?: readonly string[];
  /** What its root entry loads at first use only: nobody pays for it who does not use it. */
  readonly atFirstUse?: readonly string[];
}

/** The packages and everything they may know. Rows of packages that do not exist yet are allowed, not the reverse. */
const TABLE: Readonly<Record<string, Row>> = {
  protocols: { internal: [] },
  registry: { internal: ['protocols'] },
  'connection-pool': {
    internal: ['protocols'],
    libraries: ['cross-spawn', 'undici'],
    peers: ['@modelcontextprotocol/client'],
    atFirstUse: ['@modelcontextprotocol/client', 'cross-spawn', 'undici', 'node:child_process'],
  },
  files: {
    internal: ['protocols'],
    libraries: ['chokidar', 'js-yaml'],
    atFirstUse: ['chokidar'],
  },
  mcp: { internal: ['protocols'] },
  skills: { internal: ['protocols', 'files'], libraries: ['strip-json-comments', 'zod'] },
  commands: { internal: ['protocols', 'files'], libraries: ['zod'] },
  host: {
    internal: ['protocols', 'registry', 'connection-pool', 'files', 'mcp', 'skills', 'commands'],
    libraries: [
      'fastest-levenshtein',
      'jsonc-parser',
      'yaml',
      'zod',
      '@modelcontextprotocol/client',
    ],
  },
  'adapter-kit': { internal: ['protocols'], libraries: ['@cfworker/json-schema'] },
  'ai-sdk': { internal: ['protocols', 'adapter-kit'], peers: ['ai'] },
  // Its middleware's state is described to LangGraph by a zod schema, which every LangChain install has.
  langchain: {
    internal: ['protocols', 'adapter-kit'],
    libraries: ['zod'],
    peers: ['@langchain/core', 'langchain'],
  },
  testkit: { internal: ['protocols'], peers: ['vitest'] },
};

/** Nothing at all is loaded with this package. */
const WITHOUT_IMPORTS = 'protocols';

const scoped = (name: string) => `@patchbay/${name}`;
const names = (record: Readonly<Record<string, string>> = {}) => Object.keys(record).toSorted();
const short = ({ folder }: WorkspacePackage) => folder.replace('packages/', '');
const show = (found: readonly Import[]) =>
  found.map(({ at, kind, specifier }) => `${at} ${kind} ${specifier}`);
const fileOf = (subpath: string) => (subpath === '.' ? 'index' : subpath.replace('./', ''));
const built = (subpath: string) => ({
  types: `./dist/${fileOf(subpath)}.d.ts`,
  default: `./dist/${fileOf(subpath)}.js`,
});
const row = (pkg: WorkspacePackage): Row => TABLE[short(pkg)] ?? { internal: [] };
const importsIn = (pkg: WorkspacePackage) => sourcesOf(pkg).flatMap((file) => importsOf(file));

/** A package of which only the folder exists. */
const isEmpty = (pkg: WorkspacePackage) =>
  readFileSync(join(root, pkg.folder, 'src/index.ts'), 'utf8').trim() === 'export {};';

const escapeRegExp = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

/** What runs when an entry is loaded: its own static imports, and those of the files it reaches by them. */
function loadedWith(entry: string, seen: Set<string> = new Set()): readonly Import[] {
  if (seen.has(entry)) return [];
  seen.add(entry);
  return importsOf(entry)
    .filter(({ kind }) => kind === 'static')
    .flatMap((found) =>
      found.specifier.startsWith('.')
        ? loadedWith(normalize(join(dirname(entry), found.specifier)), seen)
        : [found],
    );
}

it('every package has a row in the table', () => {
  expect(published.map(short).filter((name) => TABLE[name] === undefined)).toEqual([]);
  expect(published.length).toBeGreaterThan(0);
});

describe.each(published.map((pkg) => [pkg.manifest.name, pkg] as const))('%s', (_, pkg) => {
  const { folder, manifest } = pkg;
  const allowed = row(pkg);
  const peers = allowed.peers ?? [];

  it('is named after its folder', () => {
    expect(manifest.name).toBe(scoped(short(pkg)));
  });

  it('depends on what the table allows', () => {
    const internal = names(manifest.dependencies).filter((name) => name.startsWith('@patchbay/'));
    const libraries = names(manifest.dependencies).filter((name) => !internal.includes(name));
    const may = new Set(allowed.internal.map(scoped));
    expect(internal.filter((name) => !may.has(name))).toEqual([]);
    expect(libraries.filter((name) => !allowed.libraries?.includes(name))).toEqual([]);
    expect(names(manifest.peerDependencies)).toEqual(peers.toSorted());
  });

  it('imports what it depends on', () => {
    const may = [
      manifest.name,
      ...allowed.internal.map(scoped),
      ...(allowed.libraries ?? []),
      ...peers,
    ];
    const foreign = importsIn(pkg).filter(({ specifier }) => {
      const from = packageOf(specifier);
      return from !== undefined && !may.includes(from);
    });
    expect(show(foreign)).toEqual([]);
  });

  it('takes versions from the workspace and the catalogue', () => {
    const specs = { ...manifest.dependencies, ...manifest.devDependencies };
    const others = Object.entries(specs).filter(
      ([name, spec]) => spec !== (name.startsWith('@patchbay/') ? 'workspace:^' : 'catalog:'),
    );
    expect(others).toEqual([]);
  });

  it('imports no file of another package by its path', () => {
    const outside = [
      ...sourcesOf(pkg),
      ...filesBelow(`${folder}/test`, (name) => name.endsWith('.ts')),
    ]
      .flatMap((file) => importsOf(file).map((found) => ({ file, found })))
      .filter(
        ({ file, found: { specifier } }) =>
          specifier.startsWith('.') &&
          !normalize(join(dirname(file), specifier)).startsWith(`${folder}/`),
      );
    expect(show(outside.map(({ found }) => found))).toEqual([]);
  });

  it('loads nothing with its root entry that is optional or belongs to the first use', () => {
    const optional = Object.entries(manifest.peerDependenciesMeta ?? {})
      .filter(([, meta]) => meta.optional === true)
      .map(([name]) => name);
    const late = new Set([...optional, ...(allowed.atFirstUse ?? [])]);
    const early = loadedWith(`${folder}/src/index.ts`).filter(
      ({ specifier }) => late.has(specifier) || late.has(packageOf(specifier) ?? ''),
    );
    expect(show(early)).toEqual([]);
  });

  it('lists names, and only names, in its entries', () => {
    expect(notNamedExports(`${folder}/src/index.ts`)).toEqual([]);
  });

  it('holds no state in a module', () => {
    expect(sourcesOf(pkg).flatMap((file) => reassignableBindings(file))).toEqual([]);
  });

  it('has a README, a source and a test folder', () => {
    if (isEmpty(pkg)) return;
    const missing = ['README.md', 'src/index.ts', 'test'].filter(
      (path) => !existsSync(join(root, folder, path)),
    );
    expect(missing).toEqual([]);
  });

  it('is configured like every other package', () => {
    expect(readJson(`${folder}/tsconfig.json`)).toEqual({
      extends: '../../tsconfig.json',
      include: ['src', 'test'],
    });
    const { references = [], ...build } = readJson(`${folder}/tsconfig.build.json`) as {
      references?: readonly { path: string }[];
    };
    expect(build).toEqual({
      extends: '../../tsconfig.base.json',
      compilerOptions: {
        composite: true,
        emitDeclarationOnly: true,
        rootDir: 'src',
        outDir: 'dist',
        tsBuildInfoFile: 'dist/.tsbuildinfo',
      },
      include: ['src'],
    });
    const internal = names(manifest.dependencies).filter((name) => name.startsWith('@patchbay/'));
    expect(references.map(({ path }) => path).toSorted()).toEqual(
      internal.map((name) => `../${name.replace('@patchbay/', '')}/tsconfig.build.json`),
    );
  });

  /** Files for other tools, beside what is built. */
  const data = Object.keys(manifest.exports ?? {}).filter((key) => key.endsWith('.json'));

  it('publishes its build and its sources', () => {
    expect(manifest).toMatchObject({
      type: 'module',
      license: 'MIT',
      description: expect.stringMatching(/^[A-Z].*\.$/),
      sideEffects: false,
      files: [
        'dist',
        '!dist/**/*.tsbuildinfo',
        'src',
        ...data.filter((key) => key !== './package.json').map((key) => key.slice(2)),
      ],
      engines: { node: '>=20.19' },
      publishConfig: { access: 'public' },
      scripts: {
        build: 'tsc -b tsconfig.build.json && node ../../scripts/bundle.mjs',
        'check:publish': 'publint --strict && attw --pack . --profile esm-only',
      },
    });
    expect(manifest.private).toBeUndefined();
  });

  it('offers every entry to tools as a build, and to this repository as a source', () => {
    const entries = Object.keys(manifest.exports ?? {}).filter((key) => !data.includes(key));
    const shape = (target: (subpath: string) => object) => ({
      ...Object.fromEntries(entries.map((subpath) => [subpath, target(subpath)])),
      ...Object.fromEntries(data.map((file) => [file, file])),
    });
    expect(entries).toContain('.');
    expect(manifest.exports).toEqual(
      shape((subpath) => ({
        '@patchbay/source': `./src/${fileOf(subpath)}.ts`,
        ...built(subpath),
      })),
    );
    for (const [subpath, target] of Object.entries(manifest.exports ?? {})) {
      // The first condition that fits wins: the source must come before the build.
      if (typeof target === 'object')
        expect([subpath, Object.keys(target)[0]]).toEqual([subpath, '@patchbay/source']);
    }
    expect(manifest.publishConfig?.exports).toEqual(shape(built));
    expect(
      [...sourceEntries(pkg).values()].filter((source) => !existsSync(join(root, source))),
    ).toEqual([]);
  });
});

it(`${scoped(WITHOUT_IMPORTS)} imports nothing but its own files`, () => {
  const pkg = published.find(({ manifest }) => manifest.name === scoped(WITHOUT_IMPORTS))!;
  expect(names(pkg.manifest.dependencies)).toEqual([]);
  expect(show(importsIn(pkg).filter(({ specifier }) => !specifier.startsWith('.')))).toEqual([]);
});

describe('the repository', () => {
  it('keeps apps and bench private', () => {
    const apps = [...packagesIn('apps'), ...packagesIn('examples'), ...packagesIn('.')];
    expect(
      apps.filter(({ manifest }) => manifest.private !== true).map(({ folder }) => folder),
    ).toEqual([]);
  });

  it('has no registry address in its lock file', () => {
    const lines = readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8').split('\n');
    expect(
      lines.filter(
        (line) => /^\s*(resolution|tarball|registry):/.test(line) && /https?:/.test(line),
      ),
    ).toEqual([]);
    expect(lines.length).toBeGreaterThan(100);
  });

  it('names no path of this machine and no registry in its files', () => {
    const near = dirname(root);
    const machine = [root, homedir(), ...(near === tmpdir() ? [] : [near])]
      .filter((path) => path.length > 2)
      .map((path) => new RegExp(`(?<![\\w.)}\\]-])${escapeRegExp(path)}(?![\\w.-])`));
    const registry = /registry[.]npmjs|registry[.]yarnpkg|npm[.]pkg[.]github/;
    const found = filesBelow('.').flatMap((file) => {
      const text = readFileSync(join(root, file), 'latin1');
      return [...machine, registry]
        .filter((pattern) => pattern.test(text))
        .map((pattern) => `${file}: ${String(pattern)}`);
    });
    expect(found).toEqual([]);
  });
});
