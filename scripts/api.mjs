// @ts-check
// Writes packages/*/api.txt: the public signatures of each package, as the compiler declares them. Run it with `pnpm api`.
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

import { parseSync } from 'oxc-parser';

import { root } from './consumer-project.mjs';
import { packages } from './package-family.mjs';
import { run } from './run.mjs';

/**
 * The report of each package, by the file that it belongs into.
 * @returns {Promise<ReadonlyMap<string, string>>}
 */
export async function apiReports() {
  const out = realpathSync(mkdtempSync(join(tmpdir(), 'patchbay-api-')));
  try {
    const config = join(out, 'tsconfig.json');
    const options = { outDir: out, rootDir: root, removeComments: true, declarationMap: false };
    const emit = { emitDeclarationOnly: true, noCheck: true, types: [], sourceMap: false };
    writeFileSync(
      config,
      JSON.stringify({
        extends: join(root, 'tsconfig.base.json'),
        compilerOptions: { ...options, ...emit },
        include: [join(root, 'packages/*/src')],
      }),
    );
    await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', config]);
    return new Map(
      [...packages.values()].map(({ folder, manifest }) => {
        const entries = Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) => {
          const source = typeof target === 'object' ? target['@patchbay/source'] : undefined;
          if (source === undefined) return [];
          const file = join(out, folder, source.replace(/\.ts$/u, '.d.ts'));
          const declared = [...declarations(file)].toSorted(([a], [b]) => (a < b ? -1 : 1));
          return [`=== ${manifest.name}${subpath.slice(1)}`, ...declared.map(([, text]) => text)];
        });
        return [`${folder}/api.txt`, `${entries.join('\n\n')}\n`];
      }),
    );
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/**
 * What a file exports: the declaration of each name. What comes from another package is said as such.
 * @param {string} file
 * @returns {Map<string, string>}
 */
function declarations(file) {
  const code = readFileSync(file, 'utf8');
  const text = (/** @type {{ start: number, end: number }} */ node) =>
    code.slice(node.start, node.end).replaceAll(/^\s+(#private|private [^\n]*);\n/gmu, '');
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const node of parseSync(file, code).program.body) {
    if (node.type !== 'ExportNamedDeclaration') continue;
    const { declaration, source } = node;
    if (declaration !== null) {
      const names =
        declaration.type === 'VariableDeclaration'
          ? declaration.declarations.map(({ id }) => nameOf(id))
          : [nameOf('id' in declaration ? declaration.id : undefined)];
      for (const name of names) {
        const known = found.get(name);
        found.set(name, known === undefined ? text(node) : `${known}\n${text(node)}`);
      }
      continue;
    }
    for (const { local, exported } of node.specifiers) {
      const name = nameOf(exported);
      const from = source?.value ?? '';
      const target = normalize(join(dirname(file), from.replace(/\.ts$/u, '.d.ts')));
      const declared = from.startsWith('.') ? declarations(target).get(nameOf(local)) : undefined;
      found.set(name, declared ?? `export { ${name} } from '${from}';`);
    }
  }
  return found;
}

/** @param {unknown} node */
const nameOf = (node) =>
  String(
    /** @type {{ name?: string, value?: string } | undefined} */ (node)?.name ??
      /** @type {{ value?: string } | undefined} */ (node)?.value,
  );

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, report] of await apiReports()) writeFileSync(join(root, file), report);
}
