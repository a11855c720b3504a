import type { Problem } from '@patchbay/protocols';

import { decodeText } from './decode-text.ts';
import { splitFences, type FrontmatterCode, type Note } from './fence.ts';
import { readYaml, type FrontmatterData } from './yaml-entries.ts';

/** A Markdown file with frontmatter. */
export interface FrontmatterFile {
  /** Empty without a prototype if there is no frontmatter. */
  readonly data: FrontmatterData;
  readonly body: string;
  /** Line of the file on which the body begins, from 1. */
  readonly bodyLine: number;
  /** Line of the file on which the frontmatter's first entry stands, from 1. */
  readonly headLine: number;
  readonly hasFrontmatter: boolean;
  /** What had to be repaired, in the order of the file. */
  readonly problems: readonly Problem[];
}

export interface FrontmatterOptions {
  /** Shown in problems. */
  readonly file: string;
  /** Who has the problems: a capability id. */
  readonly source: string;
  /** The bytes are the head of a longer file: a character that is cut at the end is no fault. Default false. */
  readonly partial?: boolean;
}

/** Largest file and block that are read: several times what occurs in the field. */
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_FRONTMATTER_CHARS = 64 * 1024;

const SAYS: Readonly<Record<FrontmatterCode, string>> = {
  'not-utf8': 'is not UTF-8; it was decoded as well as possible. Save it as UTF-8',
  'text-before-frontmatter': 'has text before its frontmatter. Let the file begin with ---',
  'wrapped-in-code-fence': 'is wrapped in a code fence. Remove the fence around it',
  'frontmatter-language':
    'has frontmatter in a language that is not YAML; it was not read, and nothing was run. Write YAML between plain ---',
  'no-frontmatter': 'has no frontmatter. Begin it with --- and at least a description',
  'unclosed-frontmatter':
    'has frontmatter that is not closed; it was taken to end at the first line that does not belong to it. Close it with ---',
  'duplicate-key': 'has the same key twice; the last one counts. Remove one',
  'invalid-yaml':
    'is not valid YAML here; it was read entry by entry. Quote values that contain ": ", "#", "[" or "@"',
  'quoted-value': 'has a value that was taken as plain text. Put it in quotes',
  'dropped-line':
    'has a line in its frontmatter that is no entry; it was left out. Remove it or move it below the closing ---',
  binary: 'is not text and was not read. Save it as UTF-8 text, or remove it',
  'file-too-large': `is larger than ${MAX_FILE_BYTES} bytes and was not read. Move parts into files beside it`,
  'frontmatter-too-large': `has frontmatter of more than ${MAX_FRONTMATTER_CHARS} characters and was not read. Move text below the closing ---`,
};

/**
 * Reads a Markdown file with frontmatter. Lenient: what other clients read is read; every repair is a problem with file
 * and line. Never throws and never runs anything. `undefined` for what cannot be read at all; `refused` says why.
 */
export function readFrontmatter(
  bytes: Uint8Array | string,
  options: FrontmatterOptions,
): FrontmatterFile | { readonly refused: Problem } {
  const problems: Problem[] = [];
  const make = (code: FrontmatterCode, line: number, what?: string): Problem => ({
    source: options.source,
    code,
    severity: REFUSING.has(code) ? 'error' : 'warning',
    message: `${options.file}:${line} ${SAYS[code]}${what === undefined ? '' : ` (${what.slice(0, 80)})`}.`,
    file: options.file,
    line,
  });
  const note: Note = (code, line, what) => problems.push(make(code, line, what));
  const size = typeof bytes === 'string' ? bytes.length : bytes.byteLength;
  if (size > MAX_FILE_BYTES) return { refused: make('file-too-large', 1) };
  const { text, guessed } =
    typeof bytes === 'string'
      ? { text: bytes.replace(/^\uFEFF+/, ''), guessed: false }
      : decodeText(bytes, options.partial);
  if (text.includes('\0')) return { refused: make('binary', 1) };
  if (guessed) note('not-utf8', 1);
  const { head, headLine, body, bodyLine } = splitFences(text, note);
  if (head === undefined) {
    note('no-frontmatter', 1);
    return {
      data: Object.create(null) as FrontmatterData,
      body,
      bodyLine,
      headLine,
      hasFrontmatter: false,
      problems,
    };
  }
  if (head.length > MAX_FRONTMATTER_CHARS)
    return { refused: make('frontmatter-too-large', headLine) };
  const data = readYaml(head, headLine, note);
  return { data, body, bodyLine, headLine, hasFrontmatter: true, problems };
}

const REFUSING: ReadonlySet<FrontmatterCode> = new Set([
  'binary',
  'file-too-large',
  'frontmatter-too-large',
]);
