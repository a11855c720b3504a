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
  const match = /^\s*\/([\p{L}\p{N}_][\p{L}\p{N}_.:-]*)(?=\s|$)/u.exec(line);
  if (match === null) return undefined;
  const raw = line
    .slice(match[0].length)
    .replace(/^[ \t]+/, '')
    .trimEnd();
  const words = splitWords(raw);
  return { name: match[1]!, args: { raw, positional: words, named: namedOf(words) } };
}

/** Words as a shell splits them: quotes group and vanish, a backslash takes the next character as it is. */
export function splitWords(text: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (quote !== undefined) {
      if (c === quote) quote = undefined;
      else if (c === '\\' && quote === '"' && /["\\]/.test(text[i + 1] ?? '')) word += text[++i]!;
      else word += c;
    } else if ((c === '"' || c === "'") && text.includes(c, i + 1)) {
      quote = c;
      word ??= '';
    } else if (c === '\\' && i + 1 < text.length) {
      word = (word ?? '') + text[++i]!;
    } else if (/\s/.test(c)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? '') + c;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
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
