import { field, readFrontmatter, textField, type FrontmatterData } from '@patchbay/files';
import type { CommandArgument, CommandEntry, Problem } from '@patchbay/protocols';

import { declaredArguments } from './declared-arguments.ts';
import type { CommandDialect } from './dialect.ts';
import type { CommandHandlers } from './handlers.ts';
import { parseTemplate, type Template } from './template.ts';

/** A command file, read. */
export interface CommandDocument {
  readonly entry: CommandEntry;
  readonly template: Template;
  readonly file: string;
  readonly problems: readonly Problem[];
}

export interface CommandDocumentOptions extends CommandHandlers {
  readonly source: string;
  /** As it was reached. */
  readonly file: string;
  /** Where it lies. */
  readonly origin: string;
  readonly name: string;
  readonly dialect: CommandDialect;
  readonly precedence: number;
}

const SAYS = {
  'shell-injection-ignored':
    'asks for what a shell command says, which is not run; its text stays. Give a `runShell` handler to have it run',
  'file-injection-ignored':
    'asks for a file, which is not read; its text stays. Give a `readFile` handler to have it read',
  'positional-base-guessed':
    'uses $1 without $0, so $1 is taken for the first argument. Write $0 and $1 to count from 0',
  'argument-name':
    'declares an argument by a name that no placeholder can have. Use letters, digits and _',
  'empty-command': 'has no text, so that the command says nothing. Write below the frontmatter',
  'not-a-command':
    'says `user-invocable: false`, so that nobody can call it: it is left out. Remove the line or the file',
} as const;

/** Reads a command file. The file's name is the command's; frontmatter is optional. */
export function readCommandDocument(
  bytes: Uint8Array,
  options: CommandDocumentOptions,
): CommandDocument | { readonly refused: Problem } {
  const { file, source, dialect } = options;
  const read = readFrontmatter(bytes, { file, source });
  if ('refused' in read) return read;
  const { data, body, hasFrontmatter, headLine } = read;
  const say = (code: keyof typeof SAYS, line: number, what = ''): Problem => ({
    source,
    code,
    severity: 'warning',
    file,
    line,
    message: `${file}:${line} ${SAYS[code]}${what === '' ? '' : ` (${what.slice(0, 80)})`}.`,
  });
  if (/^(?:false|no|off|0)$/i.test(textField(data, 'user-invocable') ?? ''))
    return { refused: say('not-a-command', headLine) };

  const blank = /^(?:[ \t]*\n)+/.exec(body)?.[0] ?? '';
  const text = body.slice(blank.length).trimEnd();
  const bodyLine = read.bodyLine + blank.split('\n').length - 1;
  const lineOf = (written: string) =>
    bodyLine + text.slice(0, Math.max(0, text.indexOf(written))).split('\n').length - 1;
  const listed = declaredArguments(field(data, 'arguments'));
  const template = parseTemplate(
    text,
    dialect,
    listed.map((argument) => argument.name),
  );
  const declared = argumentsOf(template, listed);
  const shell = template.pieces.find((piece) => piece.kind === 'shell');
  const wanted = template.pieces.find((piece) => piece.kind === 'file' && piece.certain);
  const problems: Problem[] = [
    // A command without frontmatter is as good as any.
    ...read.problems.filter(({ code }) => hasFrontmatter || code !== 'no-frontmatter'),
    ...(template.rules.names === 'declared' ? listed : [])
      .filter((argument) => !/^[A-Za-z_]\w*$/.test(argument.name))
      .map((argument) => say('argument-name', headLine, argument.name)),
  ];
  if (shell?.kind === 'shell' && options.runShell === undefined)
    problems.push(say('shell-injection-ignored', lineOf(shell.written), shell.written));
  if (wanted?.kind === 'file' && options.readFile === undefined)
    problems.push(say('file-injection-ignored', lineOf(wanted.written), wanted.written));
  if (template.rules.first === 'guessed' && template.first === 1 && template.last >= 0)
    problems.push(say('positional-base-guessed', lineOf(/\$\d/.exec(text)?.[0] ?? '')));
  if (text === '') problems.push(say('empty-command', bodyLine));
  return {
    entry: entryOf(data, text, declared, options),
    template,
    file,
    problems,
  };
}

function entryOf(
  data: FrontmatterData,
  text: string,
  declared: readonly CommandArgument[],
  { name, origin, precedence }: Pick<CommandDocumentOptions, 'name' | 'origin' | 'precedence'>,
): CommandEntry {
  const hint = hintOf(data) ?? declared.map(short).join(' ');
  return Object.freeze({
    name,
    description: plain(textField(data, 'description') ?? firstLine(text)),
    origin,
    kind: 'file',
    precedence,
    ...(declared.length === 0 ? {} : { arguments: declared }),
    ...(hint === '' ? {} : { hint }),
    ...(Object.keys(data).length === 0 ? {} : { frontmatter: data }),
  });
}

/** What a file says about its arguments, by the rules of its dialect. */
function argumentsOf(
  { rules, names }: Template,
  listed: readonly CommandArgument[],
): readonly CommandArgument[] {
  if (rules.names === 'none') return [];
  if (rules.names === 'declared') return listed;
  return names.map((name) => ({
    ...listed.find((one) => one.name === name),
    name,
    required: true,
  }));
}

const short = ({ name, required }: CommandArgument): string =>
  required === true ? `<${name}>` : `[${name}]`;

/** `argument-hint: [id]` is a list in YAML, and meant as text. */
function hintOf(data: FrontmatterData): string | undefined {
  const hint = field(data, 'argument-hint');
  const text = Array.isArray(hint)
    ? `[${hint.filter((item) => typeof item === 'string').join(', ')}]`
    : hint;
  return typeof text === 'string' && text.trim() !== '' ? plain(text) : undefined;
}

/** The first line of prose; a heading if there is nothing else. */
function firstLine(text: string): string {
  const prose = /^(?!#|\s*$|---|```)(.+)$/m.exec(text)?.[1];
  return /^.{0,1000}/su.exec(prose ?? /^#+[ \t]+(.+)$/m.exec(text)?.[1] ?? '')![0];
}

/** One line without what cannot be seen, or would lead a terminal. */
const plain = (text: string): string =>
  text
    .replaceAll(/[\u200B\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu, '')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
