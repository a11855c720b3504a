import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { expect, it } from 'vitest';

import { readmes } from '../scripts/readme-blocks.mjs';
import { readJson, root } from './workspace.ts';

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

it('the page of errors has every code of the union, with a cause and what to do', () => {
  const codes = union('packages/protocols/src/errors.ts', 'PatchbayCode');
  expect(codes.length).toBeGreaterThan(30);
  expect(rows('docs/reference/errors.md')).toEqual(codes);
  expect(read('docs/reference/errors.md')).not.toMatch(/\|[ ]*\|/u);
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

it('every link between the pages leads somewhere', () => {
  const broken = readmes(root).flatMap((file) =>
    [
      ...read(file)
        .replaceAll(/^```[^]*?^```/gmu, '')
        .matchAll(/\]\((?!\w+:)([^)#\s]+)/gu),
    ]
      .map(([, target]) => target!)
      .filter((target) => !existsSync(join(root, dirname(file), target)))
      .map((target) => `${file}: ${target}`),
  );
  expect(broken).toEqual([]);
});

it('the questions of a reader are answered within two links of the README', () => {
  expect(read('README.md')).toContain('(docs/README.md)');
  const map = read('docs/README.md');
  const answers: readonly (readonly [page: string, heading: string])[] = [
    ['guides/mcp-servers.md', '## Add a server'],
    ['guides/mcp-servers.md', '## When a server fails'],
    ['guides/tenants.md', '## Limit a tenant'],
    ['guides/skills.md', '## Watch a skill folder'],
    ['guides/approvals.md', '# Approve a call'],
    ['guides/test-a-capability.md', '# Test a capability'],
  ];
  for (const [page, heading] of answers) {
    expect(map).toContain(page);
    expect(read(`docs/${page}`)).toContain(heading);
  }
});
