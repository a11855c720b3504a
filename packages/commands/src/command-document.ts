import { field, listField, readFrontmatter, textField } from '@patchbay/files';
import type { CommandEntry, Problem } from '@patchbay/protocols';

import { unsupportedIn, type CommandDialect } from './substitute.ts';

/** A command file, read. */
export interface CommandDocument {
  readonly entry: CommandEntry;
  readonly template: string;
  /** Names of positional arguments, in order. (`arguments: [issue, branch]`) */
  readonly names: readonly string[];
  readonly problems: readonly Problem[];
}

export interface CommandDocumentOptions {
  readonly source: string;
  readonly file: string;
  readonly name: string;
  readonly dialect: CommandDialect;
  readonly precedence: number;
}

const SAYS: Readonly<Record<string, string>> = {
  'shell-injection-ignored': 'asks for a shell command (!`…`), which is not run; its text stays',
  'positional-base-guessed':
    'uses $1 without $0, so $1 is taken for the first argument. Write $0 and $1 to count from 0',
};

/** Reads a command file. The file's name is the command's; frontmatter is optional. */
export function readCommandDocument(
  bytes: Uint8Array,
  options: CommandDocumentOptions,
): CommandDocument | { readonly refused: Problem } {
  const { name, file, source, dialect, precedence } = options;
  const read = readFrontmatter(bytes, { file, source });
  if ('refused' in read) return read;
  const { data, body, hasFrontmatter } = read;
  const template = body.replace(/^\n+/, '').trimEnd();
  const names = listField(data, 'arguments') ?? [];
  const hint = field(data, 'argument-hint');
  const shown = Array.isArray(hint)
    ? `[${hint.filter((item) => typeof item === 'string').join(', ')}]`
    : hint;
  const problems: Problem[] = [
    // A command without frontmatter is as good as any.
    ...read.problems.filter(({ code }) => hasFrontmatter || code !== 'no-frontmatter'),
    ...unsupportedIn(template, dialect).map((code): Problem => ({
      source,
      code,
      severity: 'warning',
      file,
      line: 1,
      message: `${file}:1 ${SAYS[code]}.`,
    })),
  ];
  const description =
    textField(data, 'description') ?? /^(?!#|\s*$|---|```)(.+)$/m.exec(template)?.[1]?.trim() ?? '';
  const entry: CommandEntry = {
    name,
    description: description.slice(0, 1_000),
    origin: file,
    kind: 'file',
    precedence,
    ...(names.length === 0 ? {} : { arguments: names.map((argument) => ({ name: argument })) }),
    ...(typeof shown === 'string' && shown.trim() !== '' ? { hint: shown.trim() } : {}),
  };
  return { entry: Object.freeze(entry), template, names, problems };
}
