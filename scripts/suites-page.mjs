// @ts-check
// Writes docs/suites.md: which package runs which suite of testkit, and what each suite requires.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { parseSync, Visitor } from 'oxc-parser';

/** @typedef {{ readonly contract: string, readonly requirements: readonly string[] }} Suite */
/** @typedef {{ readonly package: string, readonly contracts: ReadonlySet<string>, readonly gaps: readonly string[] }} User */

const SUITES = 'packages/testkit/src/suites';

/**
 * The page as it should be.
 * @param {string} root The folder of the repository.
 * @returns {string}
 */
export function suitesPage(root) {
  const suites = suitesIn(root);
  const users = usersIn(root, suites);
  const total = suites.reduce((sum, { requirements }) => sum + requirements.length, 0);
  const rows = suites.map(({ contract, requirements }) => [
    `[${contract}](#${contract.toLowerCase()})`,
    String(requirements.length),
    ...users.map(({ contracts }) => (contracts.has(contract) ? 'yes' : '')),
  ]);
  const gaps = users.flatMap((user) => user.gaps.map((gap) => `- ${user.package}: ${gap}`));
  return [
    '# Suites',
    'Written by `node scripts/suites-page.mjs`; a test checks that it is current.',
    `What [\`@patchbay/testkit\`](../packages/testkit/README.md) requires of whoever implements a contract: ${total}\nrequirements in ${suites.length} suites. Who runs them here:`,
    table(['suite', 'requirements', ...users.map((user) => user.package)], rows),
    ...(gaps.length === 0
      ? ['No requirement is skipped.']
      : ['Known not to hold (with the reason where it is skipped):', gaps.join('\n')]),
    ...suites.flatMap(({ contract, requirements }) => [
      `## ${contract}`,
      requirements.map((name) => `- ${name}`).join('\n'),
    ]),
  ]
    .join('\n\n')
    .concat('\n');
}

/**
 * @param {string} root
 * @returns {Suite[]}
 */
function suitesIn(root) {
  return readdirSync(join(root, SUITES))
    .toSorted()
    .flatMap((file) => {
      /** @type {string[]} */
      const contracts = [];
      /** @type {string[]} */
      const requirements = [];
      new Visitor({
        Property: ({ key, value }) => {
          const text = textOf(value);
          if (key.type !== 'Identifier' || text === undefined) return;
          if (key.name === 'contract') contracts.push(text);
        },
        ArrayExpression: ({ elements }) => {
          for (const element of elements) {
            const name = requirementOf(element);
            if (name !== undefined) requirements.push(name);
          }
        },
      }).visit(programOf(join(root, SUITES, file)));
      return contracts.map((contract) => ({ contract, requirements }));
    });
}

/**
 * The name of a requirement: an object with `name` and `check`, or a call of `requires`.
 * @param {import('oxc-parser').ArrayExpression['elements'][number]} element
 */
function requirementOf(element) {
  if (element?.type === 'CallExpression') {
    const { callee, arguments: given } = element;
    return callee.type === 'Identifier' && callee.name === 'requires'
      ? textOf(given[0])
      : undefined;
  }
  if (element?.type !== 'ObjectExpression') return undefined;
  const fields = new Map(
    element.properties.flatMap((property) =>
      property.type === 'Property' && property.key.type === 'Identifier'
        ? [[property.key.name, property.value]]
        : [],
    ),
  );
  return fields.has('check') ? textOf(fields.get('name')) : undefined;
}

/**
 * Packages with a test file `suite*.test.ts`, the suites that it registers, and the requirements that it names.
 * @param {string} root
 * @param {readonly Suite[]} suites
 * @returns {User[]}
 */
function usersIn(root, suites) {
  const names = new Set(suites.flatMap(({ requirements }) => requirements));
  return readdirSync(join(root, 'packages'))
    .toSorted()
    .flatMap((folder) => {
      const tests = join(root, 'packages', folder, 'test');
      const files = filesOf(tests).filter((file) => /^suite(\.int)?\.test\.ts$/.test(file));
      /** @type {Set<string>} */
      const contracts = new Set();
      /** @type {Set<string>} */
      const gaps = new Set();
      for (const file of files) {
        new Visitor({
          CallExpression: ({ callee }) => {
            if (callee.type !== 'Identifier' || !callee.name.startsWith('describe')) return;
            contracts.add(callee.name.replace('describe', ''));
          },
          Literal: ({ value }) => {
            if (typeof value === 'string' && names.has(value)) gaps.add(value);
          },
        }).visit(programOf(join(tests, file)));
      }
      return files.length === 0 ? [] : [{ package: folder, contracts, gaps: [...gaps] }];
    });
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function filesOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** @param {string} file */
function programOf(file) {
  const { program, errors } = parseSync(file, readFileSync(file, 'utf8'));
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`);
  return program;
}

/**
 * The value of a string literal.
 * @param {import('oxc-parser').Node | undefined} node
 */
function textOf(node) {
  return node?.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;
}

/**
 * A Markdown table, its columns padded.
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
function table(head, rows) {
  const widths = head.map((cell, at) =>
    Math.max(3, cell.length, ...rows.map((row) => row[at]?.length ?? 0)),
  );
  /** @param {readonly string[]} cells */
  const line = (cells) =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

const path = fileURLToPath(import.meta.url);
if (process.argv[1] === path) {
  const root = join(path, '../..');
  writeFileSync(join(root, 'docs/suites.md'), suitesPage(root));
}
