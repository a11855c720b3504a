import type { CommandArguments } from '@patchbay/protocols';

/** A typed line that is a slash command. */
export interface TypedCommand {
  readonly name: string;
  readonly args: CommandArguments;
}

/**
 * `/name rest`. `undefined` for everything else: a path (`/usr/bin`), a lone slash, `//`, a message that merely begins
 * with one.
 */
export function parseCommandLine(line: string): TypedCommand | undefined {
  const match = /^\s*\/([\p{L}\p{N}_][\p{L}\p{M}\p{N}_.:-]*)(?=\s|$)/u.exec(line);
  if (match === null) return undefined;
  const raw = line
    .slice(match[0].length)
    .replace(/^(?:[^\S\n]*\n)+|^[^\S\n]+/, '')
    .trimEnd();
  const words = wordsIn(raw).map(({ text }) => text);
  return {
    name: match[1]!.normalize('NFC'),
    args: { raw, positional: words, named: namedOf(words) },
  };
}

/** A word of what was typed, without its quotes, and where it stands. */
export interface TypedWord {
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Words as a shell splits them, and as people write: quotes group and vanish, but not an apostrophe within a word or a quote
 * that is never closed; a backslash takes a blank, a quote or a backslash as it is, and stays before anything else (`C:\temp`,
 * `\d+`). `typing`: the end is not the end yet, and a quote that is not closed there groups too.
 */
export function wordsIn(text: string, typing = false): readonly TypedWord[] {
  const words: TypedWord[] = [];
  let from = -1;
  let word = '';
  const add = (more: string, at: number) => {
    if (from === -1) from = at;
    word += more;
  };
  const end = (to: number) => {
    if (from !== -1) words.push({ text: word, from, to });
    from = -1;
    word = '';
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    const next = text[i + 1] ?? '';
    if (/\s/.test(c)) end(i);
    else if (c === '\\' && /[\s"'\\]/.test(next)) add(text[++i]!, i - 1);
    else if (c === '"' || (c === "'" && !isApostrophe(text, i))) {
      const quoted = closedQuote(text, i) ?? (typing ? text.slice(i + 1) : undefined);
      if (quoted === undefined) add(c, i);
      else {
        add(c === '"' ? quoted.replaceAll(/\\(["\\])/g, '$1') : quoted, i);
        i += quoted.length + 1;
      }
    } else add(c, i);
  }
  end(text.length);
  return words;
}

/** What stands between the quote at `from` and the one that closes it. */
function closedQuote(text: string, from: number): string | undefined {
  const pattern = text[from] === '"' ? /"((?:[^"\\]|\\[\s\S])*)"/y : /'([^']*)'/y;
  pattern.lastIndex = from;
  return pattern.exec(text)?.[1];
}

/** `don't`: between two letters it belongs to the word. */
function isApostrophe(text: string, at: number): boolean {
  return /\p{L}/u.test(text[at - 1] ?? '') && /\p{L}/u.test(text[at + 1] ?? '');
}

/** A word in such a way that {@link wordsIn} gives it back. */
export function quoteWord(word: string): string {
  if (word !== '' && !/[\s"'\\]/.test(word)) return word;
  return `"${word.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/** `name=value`, `--name=value`, and `--name value`. */
function namedOf(words: readonly string[]): Readonly<Record<string, string>> {
  const named: Record<string, string> = Object.create(null) as Record<string, string>;
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const assigned = /^(?:--)?([\p{L}_][\p{L}\p{N}_-]*)=([\s\S]*)$/u.exec(word);
    if (assigned !== null) {
      named[assigned[1]!] = assigned[2]!;
      continue;
    }
    const option = /^--([\p{L}_][\p{L}\p{N}_-]*)$/u.exec(word);
    const next = words[i + 1];
    if (option !== null && next !== undefined && !next.startsWith('--')) {
      named[option[1]!] = next;
      i++;
    }
  }
  return named;
}
