import {
  assignArguments,
  PatchbayError,
  problemFrom,
  toPatchbayError,
  type CommandArgument,
  type CommandArguments,
  type CompileContext,
  type ContentPart,
} from '@patchbay/protocols';

import type { CommandHandlers } from './handlers.ts';
import type { Piece, Template } from './template.ts';
import { wordsOf } from './words.ts';

/** The command that is filled in. */
export interface FillOptions extends CommandHandlers {
  /** The capability. */
  readonly source: string;
  readonly name: string;
  readonly file: string;
  /** What it declares. */
  readonly declared: readonly CommandArgument[];
}

/** The same for everything in one template. */
interface Values {
  readonly template: Template;
  readonly raw: string;
  readonly words: readonly string[];
  readonly named: Readonly<Record<string, string>>;
}

/**
 * Puts arguments into a template. Its pieces were known before: a value is text, nothing looks at it again, and it never
 * gets into a shell command.
 * @throws PatchbayError `command-arguments`, and what a shell command that is needed failed with
 */
export async function fill(
  template: Template,
  args: CommandArguments,
  options: FillOptions,
  context: CompileContext,
): Promise<readonly ContentPart[]> {
  const { rules } = template;
  const words = wordsOf(args, rules);
  const { surplus } = rules;
  const { values: named, missing } = assignArguments(options.declared, words, { surplus });
  if (missing.length > 0) {
    const list = missing.map((name) => `\`${name}\``).join(', ');
    throw new PatchbayError(
      'command-arguments',
      `/${options.name} needs ${list}. Give it as ${missing[0]}=value.`,
      { source: options.source, details: { missing, file: options.file } },
    );
  }
  const values: Values = { template, raw: args.raw, words, named };
  const parts = await Promise.all(
    template.pieces.map((piece) => partsOf(piece, values, options, context)),
  );
  const rest =
    template.takesArguments || args.raw.trim() === '' ? [] : [text(rules.append(args.raw))];
  return joined([...parts.flat(), ...rest]);
}

async function partsOf(
  piece: Piece,
  values: Values,
  options: FillOptions,
  context: CompileContext,
): Promise<readonly ContentPart[]> {
  if (piece.kind === 'shell' && options.runShell !== undefined)
    return shellOutput(piece.command, values, options, context);
  if (piece.kind === 'file' && options.readFile !== undefined)
    return fileContents(piece.path, piece.inner, values, options, context);
  return [text(textOf(piece, values))];
}

function textOf(piece: Piece, values: Values): string {
  const { rules, last } = values.template;
  const or = (value: string | undefined, written: string) =>
    value ?? (rules.missing === 'kept' ? written : '');
  switch (piece.kind) {
    case 'text':
      return piece.text;
    case 'all':
      return rules.all === 'joined' ? values.words.join(' ') : values.raw;
    case 'position': {
      const { index, written } = piece;
      const rest = index === last && rules.surplus === 'last' && index < values.words.length;
      return or(rest ? values.words.slice(index).join(' ') : values.words[index], written);
    }
    case 'name':
      return or(values.named[piece.name], piece.written);
    default:
      return piece.inner.map((inner) => textOf(inner, values)).join('');
  }
}

async function shellOutput(
  command: string,
  values: Values,
  { runShell, source, name, file }: FillOptions,
  context: CompileContext,
): Promise<readonly ContentPart[]> {
  const { template, raw, words, named } = values;
  const { last, rules, first } = template;
  const takesRest = rules.surplus === 'last' && last >= 0 && last < words.length;
  const positional = takesRest
    ? [...words.slice(0, last), words.slice(last).join(' ')]
    : [...words];
  try {
    const output = await runShell!(
      {
        command,
        parameters: first === 1 ? [name, ...positional] : positional,
        variables: { ...named, ARGUMENTS: raw },
        name,
        file,
      },
      context,
    );
    return [text(output)];
  } catch (thrown) {
    const what = `/${name} (${file}) needs what \`${command}\` says, and it failed`;
    const error = toPatchbayError(thrown, 'source-failed', { source, what });
    if (rules.shell !== 'optional') throw error;
    context.report(problemFrom(source, error));
    return [];
  }
}

async function fileContents(
  path: readonly Piece[],
  inner: readonly Piece[],
  values: Values,
  { readFile, source, name, file }: FillOptions,
  context: CompileContext,
): Promise<readonly ContentPart[]> {
  const wanted = path.map((piece) => textOf(piece, values)).join('');
  try {
    const found = await readFile!({ path: wanted, name, file }, context);
    if (found === undefined) return inner.map((piece) => text(textOf(piece, values)));
    return typeof found === 'string' ? [text(found)] : found;
  } catch (thrown) {
    const what = `/${name} (${file}) needs the file ${JSON.stringify(wanted)}, which cannot be read`;
    throw toPatchbayError(thrown, 'source-failed', { source, what });
  }
}

const text = (value: string): ContentPart => ({ type: 'text', text: value });

/** Texts that follow one another are one. There is always a part. */
function joined(parts: readonly ContentPart[]): readonly ContentPart[] {
  const found: ContentPart[] = [];
  let open: string | undefined;
  const close = () => {
    if (open !== undefined && open !== '') found.push(text(open));
    open = undefined;
  };
  for (const part of parts) {
    if (isPlainText(part)) open = (open ?? '') + part.text;
    else {
      close();
      found.push(part);
    }
  }
  close();
  return found.length === 0 ? [text('')] : found;
}

/** Text without anything that would be lost in a longer one. */
function isPlainText(part: ContentPart): part is { readonly type: 'text'; readonly text: string } {
  return part.type === 'text' && !('raw' in part) && !('meta' in part && part.meta !== undefined);
}
