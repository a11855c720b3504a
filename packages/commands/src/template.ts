import { DIALECTS, type CommandDialect, type DialectRules } from './dialect.ts';

/** A template, taken apart before anything is put into it. */
export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  /** `$ARGUMENTS` */
  | { readonly kind: 'all'; readonly written: string }
  /** `$1`, `$ARGUMENTS[1]`: the argument at `index`, from 0. `number` as it counts in its dialect. */
  | {
      readonly kind: 'position';
      readonly index: number;
      readonly number: number;
      readonly written: string;
    }
  /** `$name` */
  | { readonly kind: 'name'; readonly name: string; readonly written: string }
  /** A shell command; `inner` is what stays of it if nobody runs it. */
  | {
      readonly kind: 'shell';
      readonly command: string;
      readonly inner: readonly Piece[];
      readonly written: string;
    }
  /** `@path`, with the arguments that the path is made of. */
  | {
      readonly kind: 'file';
      readonly path: readonly Piece[];
      readonly inner: readonly Piece[];
      /** Whether it can hardly mean anything else: `@src/a.ts`, `@$1`, not `@someone`. */
      readonly certain: boolean;
      readonly written: string;
    };

export interface Template {
  readonly pieces: readonly Piece[];
  readonly rules: DialectRules;
  /** The number of the first positional argument. */
  readonly first: 0 | 1;
  /** Names that stand for arguments, in order. */
  readonly names: readonly string[];
  /** Index of the last positional argument that is asked for; -1 if none is. */
  readonly last: number;
  /** Whether what was typed has a place in it. */
  readonly takesArguments: boolean;
}

/** Takes a template apart by the rules of its dialect. `declared`: names from the frontmatter. */
export function parseTemplate(
  text: string,
  dialect: CommandDialect,
  declared: readonly string[] = [],
): Template {
  const rules = DIALECTS[dialect];
  const first = rules.first === 'guessed' ? (COUNTS_FROM_ZERO.test(text) ? 0 : 1) : rules.first;
  const parser = new Parser(rules, first, new Set(declared));
  const pieces = parser.parse(text, codeIn(text));
  const all = pieces.flatMap(flat);
  const written = all.flatMap((piece) => (piece.kind === 'name' ? piece.name : []));
  return {
    pieces,
    rules,
    first,
    names: rules.names === 'written' ? [...new Set(written)] : declared,
    last: Math.max(-1, ...all.map((piece) => (piece.kind === 'position' ? piece.index : -1))),
    takesArguments: all.some(({ kind }) => kind !== 'text'),
  };
}

/** Behind a path it belongs to the sentence. */
const PUNCTUATION: ReadonlySet<string> = new Set('.,;:!?)]}"\'*_');
const COUNTS_FROM_ZERO = /(?<!\\)\$0\b|\$ARGUMENTS\[\d/;

function endOfPath(path: string): number {
  let end = path.length;
  while (end > 0 && PUNCTUATION.has(path[end - 1]!)) end--;
  return end;
}

/** A piece, or the pieces that are in it. */
function flat(piece: Piece): readonly Piece[] {
  return piece.kind === 'shell' || piece.kind === 'file' ? piece.inner : [piece];
}

class Parser {
  readonly #rules: DialectRules;
  readonly #first: 0 | 1;
  readonly #declared: ReadonlySet<string>;
  readonly #arguments: RegExp | undefined;
  readonly #injections: RegExp | undefined;

  constructor(rules: DialectRules, first: 0 | 1, declared: ReadonlySet<string>) {
    this.#rules = rules;
    this.#first = first;
    this.#declared = declared;
    this.#arguments = argumentPattern(rules);
    this.#injections = injectionPattern(rules);
  }

  /** Injections first: what is in one belongs to it. `code`: where `@` means nothing. */
  parse(text: string, code: readonly (readonly [number, number])[]): readonly Piece[] {
    if (this.#injections === undefined) return this.#withArguments(text);
    return cut(text, this.#injections, (match) => {
      const groups = match.groups ?? {};
      const shell = groups['shell'] ?? groups['shellBraced'];
      const path = groups['path'] ?? groups['pathBraced'];
      if (shell !== undefined) return this.#shell(match[0], shell);
      const { index } = match;
      if (path === undefined || code.some(([from, to]) => index >= from && index < to)) return [];
      return this.#file(match[0], path);
    }).flatMap((piece) => (piece.kind === 'text' ? this.#withArguments(piece.text) : [piece]));
  }

  #shell(whole: string, command: string): readonly Piece[] {
    const inner = this.#withArguments(whole);
    // As a shell counts: `$10` is its `${10}`, and it has no `$ARGUMENTS[1]`.
    const plain = this.#withArguments(command).map((piece) => {
      if (piece.kind === 'position')
        return /^\$\d$/.test(piece.written) ? piece.written : `\${${piece.number}}`;
      return piece.kind === 'text' ? piece.text : piece.written;
    });
    return [{ kind: 'shell', command: plain.join(''), inner, written: whole }];
  }

  #file(whole: string, path: string): readonly Piece[] {
    const braced = whole.endsWith('}') && whole.startsWith('@{');
    const end = braced ? path.length : endOfPath(path);
    const tail = path.slice(end);
    const named = path.slice(0, end);
    if (named === '') return [];
    const pieces = this.#withArguments(named);
    const certain =
      braced ||
      pieces.some(({ kind }) => kind !== 'text') ||
      /^[./~]|\.[A-Za-z0-9]{1,8}$/.test(named);
    const written = whole.slice(0, whole.length - tail.length);
    const inner = this.#withArguments(written);
    const file: Piece = { kind: 'file', path: pieces, inner, certain, written };
    return tail === '' ? [file] : [file, { kind: 'text', text: tail }];
  }

  #withArguments(text: string): readonly Piece[] {
    if (this.#arguments === undefined) return [{ kind: 'text', text }];
    return cut(text, this.#arguments, (match) => {
      const { escaped, indexed, digits, name } = match.groups ?? {};
      const written = match[0];
      if (escaped !== undefined) return [{ kind: 'text', text: '$' }];
      if (written === '$ARGUMENTS') return [{ kind: 'all', written }];
      if (indexed !== undefined)
        return [{ kind: 'position', index: Number(indexed), number: Number(indexed), written }];
      if (digits !== undefined) {
        const number = Number(digits);
        if (number < this.#first) return [];
        return [{ kind: 'position', index: number - this.#first, number, written }];
      }
      const known =
        name !== undefined && (this.#rules.names === 'written' || this.#declared.has(name));
      return known ? [{ kind: 'name', name, written }] : [];
    });
  }
}

function argumentPattern({ all, escape, first, names }: DialectRules): RegExp | undefined {
  if (all === 'none') return undefined;
  const parts = [
    ...(escape === 'backslash' ? [String.raw`(?<escaped>\\\$)(?=\w)`] : []),
    ...(escape === 'doubled' ? [String.raw`\$\$`] : []),
    ...(first === 'guessed' ? [String.raw`\$ARGUMENTS\[(?<indexed>\d+)\]`] : []),
    String.raw`\$ARGUMENTS\b`,
    String.raw`\$(?<digits>\d+)`,
    ...(names === 'declared' ? [String.raw`\$(?<name>[A-Za-z_]\w*)`] : []),
    ...(names === 'written' ? [String.raw`\$(?<name>[A-Z][A-Z\d_]*)(?!\w)`] : []),
  ];
  return new RegExp(parts.join('|'), 'g');
}

/** What stands in braces, on one line; half of a command is none. */
const BALANCED = String.raw`(?:[^{}\n]|\{[^{}\n]*\})+`;

function injectionPattern({ shell, files, braces }: DialectRules): RegExp | undefined {
  const start = String.raw`(?<=^|\s)`;
  const parts = [
    ...(shell === 'none' ? [] : [`${shell === 'needed' ? start : ''}!\`(?<shell>[^\`]+)\``]),
    ...(braces
      ? [
          String.raw`${start}!\{(?<shellBraced>${BALANCED})\}`,
          String.raw`${start}@\{(?<pathBraced>${BALANCED})\}`,
        ]
      : []),
    ...(files ? [`${start}@(?<path>(?:\\$\\{\\w+\\}|[^\\s\`"'<>@{])+)`] : []),
  ];
  return parts.length === 0 ? undefined : new RegExp(parts.join('|'), 'g');
}

/** Cuts a text at what a pattern finds; what `make` makes nothing of stays text. */
function cut(
  text: string,
  pattern: RegExp,
  make: (match: RegExpExecArray) => readonly Piece[],
): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    const made = make(match);
    if (made.length === 0) continue;
    if (match.index > from) pieces.push({ kind: 'text', text: text.slice(from, match.index) });
    pieces.push(...made);
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ kind: 'text', text: text.slice(from) });
  return pieces;
}

/** Fenced blocks and code in lines: from, to. */
function codeIn(text: string): readonly (readonly [number, number])[] {
  const code =
    /^[ \t]*(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^[ \t]*\1[`~]*[ \t]*$|$(?![\s\S]))|`[^`\n]+`/gm;
  return [...text.matchAll(code)].map(({ index, 0: found }) => [index, index + found.length]);
}
