// @ts-check
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A block of TypeScript in a Markdown file.
 * @typedef {object} Block
 * @property {string} file The Markdown file, from the root of the repository.
 * @property {number} line The line of the file that holds the first line of the code, from 1.
 * @property {string} code
 * @property {boolean} test Whether it is a file of tests rather than a program.
 * @property {boolean} run Whether it is marked as a whole program, by `run` behind the language.
 */

/** Folders that hold a README, or a whole tree of pages. */
const PARENTS = [
  '.',
  'packages',
  'apps',
  'examples',
  'docs',
  'docs/guides',
  'docs/reference',
  'docs/decisions',
  'docs/programs',
];

/**
 * The Markdown files whose code has to compile: every page at the root and in `docs`, and the README of every folder.
 * Change logs are history.
 * @param {string} root
 * @returns {string[]}
 */
export function readmes(root) {
  const pages = PARENTS.flatMap((parent) => {
    const folder = join(root, parent);
    if (!existsSync(folder)) return [];
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = parent === '.' ? entry.name : `${parent}/${entry.name}`;
      if (entry.isFile()) return entry.name.endsWith('.md') ? [path] : [];
      return existsSync(join(root, path, 'README.md')) ? [`${path}/README.md`] : [];
    });
  });
  return [...new Set(pages)].filter((path) => !path.endsWith('CHANGELOG.md')).toSorted();
}

/**
 * The TypeScript blocks of a Markdown file, also indented ones (in a list).
 * @param {string} root
 * @param {string} file
 * @returns {Block[]}
 */
export function blocksOf(root, file) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {{ fence: string, indent: number, line: number, code: string[], ts: boolean, run: boolean } | undefined} */
  let open;
  for (const [index, line] of readFileSync(join(root, file), 'utf8').split(/\r?\n/).entries()) {
    const [, indent = '', fence, info = '', meta = ''] =
      /^(\s*)(`{3,}|~{3,})\s*(\S*)\s*(.*)/.exec(line) ?? [];
    if (open === undefined) {
      if (fence === undefined) continue;
      // What is a file of an example is compiled there.
      const ts = ['ts', 'typescript', 'mts'].includes(info) && !meta.includes('file=');
      const run = meta.trim() === 'run';
      open = { fence, indent: indent.length, line: index + 2, code: [], ts, run };
    } else if (fence?.startsWith(open.fence) && info === '') {
      const { ts, line: first, run } = open;
      const code = `${open.code.join('\n')}\n`;
      if (ts)
        blocks.push({ file, line: first, code, run, test: /^import .*'vitest'/mu.test(code) });
      open = undefined;
    } else {
      open.code.push(line.slice(Math.min(open.indent, /^\s*/.exec(line)?.[0].length ?? 0)));
    }
  }
  if (open !== undefined)
    throw new Error(`${file}:${open.line - 1}: this code block is not closed`);
  return blocks;
}
