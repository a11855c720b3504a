import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';

import { parseSync, Visitor } from 'oxc-parser';

import { root } from './workspace.ts';

/** One `import` or `export … from` of a source file. */
export interface Import {
  /** As `file:line`, for messages. */
  readonly at: string;
  /** What is imported; the empty string if it is computed. */
  readonly specifier: string;
  /** `type` imports leave nothing behind; `dynamic` ones run when the call is reached; `static` ones at load. */
  readonly kind: 'static' | 'dynamic' | 'type';
}

const parse = (file: string) => {
  const text = readFileSync(join(root, file), 'utf8');
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`);
  return { program, at: (offset: number) => `${file}:${text.slice(0, offset).split('\n').length}` };
};

/** Every import of a file, also inline ones of types (`import('x').Y`). */
export function importsOf(file: string): readonly Import[] {
  const { program, at } = parse(file);
  const imports: Import[] = [];
  const add = (start: number, specifier: string, kind: Import['kind']) =>
    imports.push({ at: at(start), specifier, kind });
  new Visitor({
    ImportDeclaration: (node) =>
      add(node.start, node.source.value, node.importKind === 'type' ? 'type' : 'static'),
    ExportAllDeclaration: (node) =>
      add(node.start, node.source.value, node.exportKind === 'type' ? 'type' : 'static'),
    ExportNamedDeclaration: (node) =>
      node.source &&
      add(node.start, node.source.value, node.exportKind === 'type' ? 'type' : 'static'),
    ImportExpression: (node) =>
      add(
        node.start,
        node.source.type === 'Literal' && typeof node.source.value === 'string'
          ? node.source.value
          : '',
        'dynamic',
      ),
    TSImportType: (node) => add(node.start, node.source.value, 'type'),
  }).visit(program);
  return imports;
}

/** Statements at the top of a file that make a binding that can be assigned again. */
export function reassignableBindings(file: string): readonly string[] {
  const { program, at } = parse(file);
  return program.body.flatMap((node) => {
    const statement = node.type === 'ExportNamedDeclaration' ? node.declaration : node;
    return statement?.type === 'VariableDeclaration' && ['let', 'var'].includes(statement.kind)
      ? [at(node.start)]
      : [];
  });
}

/** Statements of an index file that are anything but a list of names from another file. */
export function notNamedExports(file: string): readonly string[] {
  const { program, at } = parse(file);
  return program.body
    .filter((node) => node.type !== 'ExportNamedDeclaration' || node.declaration !== null)
    .map((node) => at(node.start));
}

/** The package of a specifier: `@a/b/c` is of `@a/b`. Nothing for relative paths and Node's own modules. */
export function packageOf(specifier: string): string | undefined {
  if (/^[./]/.test(specifier) || specifier === '' || isBuiltin(specifier)) return undefined;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
