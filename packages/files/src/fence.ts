/** What was noticed while a file was read: a code, and where. */
export type Note = (code: FrontmatterCode, line: number, what?: string) => void;

/** What can be wrong with frontmatter. Every one of them is repaired, unless it says otherwise. */
export type FrontmatterCode =
  | 'not-utf8'
  | 'text-before-frontmatter'
  | 'wrapped-in-code-fence'
  | 'frontmatter-language'
  | 'no-frontmatter'
  | 'unclosed-frontmatter'
  | 'duplicate-key'
  | 'invalid-yaml'
  | 'quoted-value'
  | 'dropped-line'
  // not repaired
  | 'binary'
  | 'file-too-large'
  | 'frontmatter-too-large';

/** A document taken apart. */
export interface Fenced {
  /** What stands between the fences; `undefined` if there are none. */
  readonly head: string | undefined;
  /** Line of the file on which `head` begins, from 1. */
  readonly headLine: number;
  readonly body: string;
  /** Line of the file on which `body` begins, from 1. */
  readonly bodyLine: number;
}

const FENCE = /^---[ \t]*$/;
const CLOSING = /\n(?:---|\.\.\.)[ \t]*(?=\n|$)/;

/**
 * Splits a document into frontmatter and body by lines: a fence is a line, never a part of one. Line ends are
 * normalised. Text before the fence (blank lines, comments) and a code fence around the document are forgiven.
 */
export function splitFences(source: string, note: Note): Fenced {
  let text = source.includes('\r') ? source.replaceAll(/\r\n?/g, '\n') : source;
  let skipped = 0;
  const lead = /^(?:[ \t]*\n|[ \t]*<!--[\s\S]*?-->[ \t]*\n)+/.exec(text)?.[0];
  if (lead !== undefined && /^[ \t]*---/.test(text.slice(lead.length))) {
    note('text-before-frontmatter', 1);
    text = text.slice(lead.length);
    skipped = lead.split('\n').length - 1;
  }
  const wrapped = /^(`{3,})[a-z]*[ \t]*\n([ \t]*---[ \t]*\n[\s\S]*?)\n\1[ \t]*\n?$/.exec(text)?.[2];
  if (wrapped !== undefined) {
    note('wrapped-in-code-fence', skipped + 1);
    text = wrapped;
    skipped += 1;
  }
  const begin = skipped + 1;
  const whole: Fenced = { head: undefined, headLine: begin, body: text, bodyLine: begin };
  const afterFirst = text.indexOf('\n');
  const first = (afterFirst < 0 ? text : text.slice(0, afterFirst)).trimStart();
  // `---js`: never an engine, never run.
  if (/^---[ \t]*[A-Za-z]/.test(first)) {
    note('frontmatter-language', skipped + 1, first.slice(3).trim());
    return whole;
  }
  if (!FENCE.test(first) || afterFirst < 0) return whole;
  const rest = text.slice(afterFirst);
  const closing = CLOSING.exec(rest);
  if (closing !== null) {
    const head = rest.slice(1, closing.index).split('\n');
    const lines = closing.index === 0 ? 0 : head.length;
    return {
      // Put together anew: as a part of the file's text it would keep all of it in memory.
      head: head.join('\n'),
      headLine: begin + 1,
      body: rest.slice(closing.index + closing[0].length + 1),
      bodyLine: begin + lines + 2,
    };
  }
  // Without a closing fence the block ends at the first line that cannot belong to a mapping.
  const lines = text.split('\n');
  let last = 1;
  while (last < lines.length && (isEntry(lines[last]!) || /^[ \t]+\S/.test(lines[last]!))) last++;
  if (last === 1) return whole;
  note('unclosed-frontmatter', skipped + 1);
  return {
    head: lines.slice(1, last).join('\n'),
    headLine: begin + 1,
    body: lines.slice(last).join('\n'),
    bodyLine: begin + last,
  };
}

const isEntry = (line: string): boolean => /^[A-Za-z_][\w.-]*[ \t]*:(?:\s|$)/.test(line);
