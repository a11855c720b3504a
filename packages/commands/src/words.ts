import type { CommandArguments } from '@patchbay/protocols';

import type { DialectRules } from './dialect.ts';

/** What was typed as the words that a dialect sees in it. */
export function wordsOf(args: CommandArguments, rules: DialectRules): readonly string[] {
  if (rules.words === 'shell') return args.positional;
  const token = rules.words === 'opencode' ? OPENCODE : CODEX;
  return [...args.raw.matchAll(token)].map(([word]) =>
    rules.words === 'opencode' ? outside(word) : word.replaceAll(/"([^"]*)"/g, '$1'),
  );
}

/**
 * `[Image 1]`, `"…"` and `'…'` are one word each, wherever they stand: `a"b c"` is two. A quote that is never closed is a
 * letter like any other.
 */
const OPENCODE = /\[Image\s+\d+\]|"[^"]*"|'[^']*'|(?:(?!"[^"]*"|'[^']*'|\[Image\s+\d+\])\S)+/gi;
/** Double quotes group, also in the middle of a word: `NAME="a b"`. */
const CODEX = /(?:"[^"]*"|\S)+/g;

const outside = (word: string): string => word.replace(/^(["'])([\s\S]*)\1$/, '$2');
