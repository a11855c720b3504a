// @ts-check
// The steps of a guide, in order: what its reader runs and writes. Run as a script it copies the files of
// examples into the guides that show them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { root } from './consumer-project.mjs';

export const GUIDE = 'docs/guides/write-a-capability.md';

/** Guides that show files of examples. */
export const GUIDES = [GUIDE, 'docs/guides/write-an-adapter.md'];

/**
 * @typedef {{ kind: 'run', text: string } | { kind: 'write' | 'change', file: string, text: string }} Step
 */

const BLOCK = /^(`{3,})(\w+) (run|file=(\S+))\n([^]*?)^\1$/gmu;

/**
 * Blocks marked `run` are commands, `file=` is a file to write, or (`diff`) to change.
 * @param {string} markdown
 * @returns {Step[]}
 */
export function stepsOf(markdown) {
  return [...markdown.matchAll(BLOCK)].map(([, , language, , file, text = '']) => {
    if (file === undefined) return { kind: 'run', text };
    return { kind: language === 'diff' ? 'change' : 'write', file, text };
  });
}

/**
 * A file after the lines of a `diff` block: `-` is what stands there, `+` what takes its place.
 * @param {string} before
 * @param {string} diff
 */
export function changed(before, diff) {
  const lines = (/** @type {string} */ sign) =>
    diff
      .split('\n')
      .filter((line) => line.startsWith(sign))
      .map((line) => line.slice(1))
      .join('\n');
  if (!before.includes(lines('-'))) throw new Error(`There is no such line:\n${lines('-')}`);
  return before.replace(lines('-'), () => lines('+'));
}

/**
 * The guide with the files as they are in the example.
 * @param {string} markdown
 */
export function withExample(markdown) {
  return markdown.replaceAll(BLOCK, (block, fence, language, info, file) => {
    const source = join(root, String(file).replace('packages/openapi/', 'examples/openapi/'));
    if (language !== 'ts' || file === undefined || !existsSync(source)) return block;
    return `${fence}${language} ${info}\n${readFileSync(source, 'utf8')}${fence}`;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const guide of GUIDES) {
    const path = join(root, guide);
    writeFileSync(path, withExample(readFileSync(path, 'utf8')));
  }
}
