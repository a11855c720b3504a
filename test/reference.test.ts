import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { expect, it } from 'vitest';

import { readmes } from '../scripts/readme-blocks.mjs';
import { filesBelow, published, readJson, root } from './workspace.ts';

const read = (file: string) => readFileSync(join(root, file), 'utf8');
/** What stands in the first column of the tables of a page. */
const rows = (file: string) =>
  [...read(file).matchAll(/^\| `([^`]+)` .*$(?!\n\| -)/gmu)].map(([, name]) => name!);
/** The members of a union of texts. */
const union = (file: string, name: string) =>
  [
    ...(new RegExp(`type ${name} =([^;]*);`, 'u').exec(read(file))?.[1] ?? '').matchAll(
      /'([\w-]+)'/gu,
    ),
  ].map(([, member]) => member!);
const sorted = (names: readonly string[]) => [...new Set(names)].toSorted();

/** The tables of a page, by their headings. */
const section = (page: string, heading: string) =>
  page.split(/^(?=## )/mu).find((part) => part.startsWith(`## ${heading}`)) ?? '';
/** The first column of the tables in a text. */
const firstCells = (text: string) =>
  [...text.matchAll(/^\| `([^`]+)`/gmu)].map(([, name]) => name!);

it('the page of errors has every code of the union, with a cause and what to do', () => {
  const codes = union('packages/protocols/src/errors.ts', 'PatchbayCode');
  expect(codes.length).toBeGreaterThan(30);
  const page = read('docs/reference/errors.md');
  expect(firstCells(page.split(/^## /mu)[0]!)).toEqual(codes);
  expect(page).not.toMatch(/\|[ ]*\|/u);
});

it('the page of errors has every other code that a package says, and none that nobody says', () => {
  const codes = union('packages/protocols/src/errors.ts', 'PatchbayCode');
  const sources = published
    .filter(({ folder }) => folder !== 'packages/testkit') // what it says is about a subject
    .flatMap(({ folder }) => filesBelow(`${folder}/src`, (name) => name.endsWith('.ts')))
    .map(read);
  const said = sources.flatMap((source) => [
    // A property, an error, a function that makes a problem of its first argument, a code of one package alone.
    ...source.matchAll(/\bcode(?:: | = |\?\? )'([a-z]+(?:-[a-z0-9]+)*)'/gu),
    ...source.matchAll(/new PatchbayError\(\s*'([a-z]+(?:-[a-z0-9]+)*)'/gu),
    ...source.matchAll(/[\s.#](?:say|warn|refuse|note|problem)\(\s*'([a-z]+(?:-[a-z0-9]+)*)'/gu),
    ...source.matchAll(/PatchbayCode \| '([a-z]+(?:-[a-z0-9]+)*)'/gu),
    // A table of codes and what is said of them.
    ...[...source.matchAll(/^const SAYS\b[^]*?^\}/gmu)].flatMap(([table]) => [
      ...table.matchAll(/^ {2}'?([a-z]+(?:-[a-z0-9]+)*)'?:/gmu),
    ]),
  ]);
  const others = sorted(said.map(([, code]) => code!)).filter((code) => !codes.includes(code));
  expect(firstCells(section(read('docs/reference/errors.md'), 'Problems')).toSorted()).toEqual(
    others,
  );
  const unsaid = codes.filter(
    (code) => sources.join('\n').split(`'${code}'`).length <= 2, // once: in the union
  );
  expect(unsaid).toEqual([]);
});

it('the page of events has every kind of change', () => {
  const kinds = union('packages/protocols/src/change-observable.ts', 'ChangeKind');
  expect(kinds.length).toBeGreaterThan(5);
  const page = rows('docs/reference/events.md').filter((name) => !name.includes(':'));
  expect(page).toEqual(kinds);
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
}

it('the page of configuration has every field of the schema, and no other', () => {
  const { properties: fields = {} } = readJson('packages/host/patchbay.schema.json') as Schema;
  const entry = (schema: Schema | undefined) =>
    (schema?.additionalProperties as Schema | undefined)?.properties ?? {};
  const server = entry(fields['mcp_servers']);
  const oauth = server['oauth']?.anyOf?.flatMap(({ properties = {} }) => Object.keys(properties));
  const expected = [
    ...Object.keys(fields),
    ...Object.keys(server),
    ...(oauth ?? []),
    ...Object.keys(fields['skills']?.properties ?? {}),
    ...Object.keys(fields['commands']?.properties ?? {}),
    ...Object.keys(entry(fields['agents'])),
  ];
  expect(expected.length).toBeGreaterThan(25);
  expect(sorted(rows('docs/reference/configuration.md'))).toEqual(sorted(expected));
});

interface Link {
  readonly words: string;
  /** The file it leads to, from the root of the repository. */
  readonly file: string;
  readonly anchor: string | undefined;
}

/** A page without its code. */
const textOf = (page: string) => read(page).replaceAll(/^(`{3,})[^]*?^\1/gmu, '');
/** The links of a page to files of the repository. */
const linksOf = (page: string): readonly Link[] =>
  [...textOf(page).matchAll(/\[([^\]]*)\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/gu)].map(
    ([, words, target, anchor]) => ({
      words: words!.replaceAll(/\s+/gu, ' '),
      file: target === '' ? page : join(dirname(page), target!),
      anchor,
    }),
  );
const headingsOf = (page: string) =>
  [...textOf(page).matchAll(/^#+ .+$/gmu)].map(([heading]) => heading);
/** The anchors of a page, as GitHub makes them of its headings. */
const anchorsOf = (page: string) =>
  headingsOf(page).map((heading) =>
    heading
      .replace(/^#+ /u, '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/gu, '-'),
  );
/** What stands below a heading. */
function below(page: string, anchor: string | undefined): string {
  const at = anchorsOf(page).indexOf(anchor ?? '');
  const [heading, next] = headingsOf(page).slice(at, at + 2);
  const [, text = ''] = read(page).split(`${heading}\n`);
  return next === undefined ? text : text.split(`${next}\n`)[0]!;
}

it('every link between the pages leads to a file, and to a heading that is there', () => {
  const broken = readmes(root).flatMap((page) =>
    linksOf(page)
      .filter(
        ({ file, anchor }) =>
          !existsSync(join(root, file)) ||
          (anchor !== undefined && !anchorsOf(file).includes(anchor)),
      )
      .map(({ file, anchor }) => `${page}: ${file}#${anchor ?? ''}`),
  );
  expect(broken).toEqual([]);
});

it.each([
  ['add a server', 'mcp_servers:'],
  ['limit a tenant', 'tools: { include, exclude }'],
  ['watch a skill folder', 'view.changes()'],
  ['handle a failed server', 'problems'],
  ['approve a call', 'approval: ('],
  ['test a capability', 'describeCapability('],
])('who wants to %s finds it behind one link of the README', (wish, answer) => {
  const link = linksOf('README.md').find(({ words }) => words === wish);
  expect(link?.anchor).toBeDefined();
  expect(below(link!.file, link!.anchor)).toContain(answer);
});
