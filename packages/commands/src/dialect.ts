/**
 * How a command file is meant. It belongs to the place that the file comes from.
 *
 * | | `patchbay` | `claude` | `opencode` | `codex` | `cursor` |
 * |---|---|---|---|---|---|
 * | all arguments | `$ARGUMENTS`, as typed | as typed | as typed | joined by one space | added behind |
 * | first positional | `$1` | `$0`, or `$1` if the file never says `$0` or `$ARGUMENTS[` | `$1` | `$1` | none |
 * | by name (`arguments: [a]`) | `$a` | `$a` | none | `$NAME` for `NAME=value`, all required | none |
 * | a missing one | empty | stays as written | empty | empty | |
 * | more than are asked for | the last one takes them | only in `$ARGUMENTS` | the last one takes them | only in `$ARGUMENTS` | |
 * | no placeholder | the text is added | `ARGUMENTS: …` is added | the text is added | nothing is added | the text is added |
 * | escape | `\$` | `\$` | none | `$$` stays `$$` | none |
 * | shell | `` !`cmd` ``, `!{cmd}` | `` !`cmd` `` | `` !`cmd` `` | none | none |
 * | files | `@path`, `@{path}` | `@path` | `@path` | none | none |
 */
export type CommandDialect = 'patchbay' | 'claude' | 'opencode' | 'codex' | 'cursor';

/** One column of the table. */
export interface DialectRules {
  /** What `$ARGUMENTS` stands for. */
  readonly all: 'raw' | 'joined' | 'none';
  /** The number of the first positional argument; `guessed`: 0 if the file shows that it counts from there, else 1. */
  readonly first: 0 | 1 | 'guessed';
  readonly names: 'declared' | 'written' | 'none';
  readonly missing: 'empty' | 'kept';
  readonly surplus: 'last' | 'dropped';
  /** What is added where there is no placeholder. */
  readonly append: (raw: string) => string;
  readonly escape: 'backslash' | 'doubled' | 'none';
  readonly words: 'shell' | 'opencode' | 'codex';
  /** A failing shell command ends the command, or leaves nothing. */
  readonly shell: 'needed' | 'optional' | 'none';
  readonly files: boolean;
  /** `!{cmd}` and `@{path}` are understood too. */
  readonly braces: boolean;
}

const behind = (raw: string): string => `\n\n${raw}`;

const PATCHBAY: DialectRules = {
  all: 'raw',
  first: 1,
  names: 'declared',
  missing: 'empty',
  surplus: 'last',
  append: behind,
  escape: 'backslash',
  words: 'shell',
  shell: 'needed',
  files: true,
  braces: true,
};

export const DIALECTS: Readonly<Record<CommandDialect, DialectRules>> = {
  patchbay: PATCHBAY,
  claude: {
    ...PATCHBAY,
    first: 'guessed',
    missing: 'kept',
    surplus: 'dropped',
    append: (raw) => `\n\nARGUMENTS: ${raw}`,
    braces: false,
  },
  opencode: {
    ...PATCHBAY,
    names: 'none',
    escape: 'none',
    words: 'opencode',
    shell: 'optional',
    braces: false,
  },
  codex: {
    ...PATCHBAY,
    all: 'joined',
    names: 'written',
    surplus: 'dropped',
    append: () => '',
    escape: 'doubled',
    words: 'codex',
    shell: 'none',
    files: false,
    braces: false,
  },
  cursor: {
    ...PATCHBAY,
    all: 'none',
    names: 'none',
    escape: 'none',
    shell: 'none',
    files: false,
    braces: false,
  },
};

const TOOL = /.*(?:^|[\\/])(?:\.|\.config[\\/])(claude|opencode|codex|cursor)(?:[\\/]|$)/s;

/** By the nearest folder with the name of a tool: `.claude`, `.opencode`, `.config/opencode`, …; else our own. */
export function dialectOf(folder: string): CommandDialect {
  return (TOOL.exec(folder)?.[1] as CommandDialect | undefined) ?? 'patchbay';
}
