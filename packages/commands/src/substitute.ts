import type { CommandArguments } from '@patchbay/protocols';

/**
 * How a command file's placeholders are meant. It belongs to the place that the file comes from.
 *
 * | | first positional | missing one | last one takes the rest | no placeholder |
 * |---|---|---|---|---|
 * | `claude` | `$0`, or `$1` if the file never says `$0` or `$ARGUMENTS[` | stays as written | no | `ARGUMENTS: …` is added |
 * | `opencode`, `patchbay` | `$1` | empty | yes | the text is added |
 * | `codex` | `$1` | empty | no | nothing is added |
 * | `cursor` | none | – | – | the text is added |
 */
export type CommandDialect = 'patchbay' | 'claude' | 'opencode' | 'codex' | 'cursor';

interface Rules {
  readonly first: 0 | 1;
  readonly restInLast: boolean;
  readonly missing: 'keep' | 'empty';
  readonly append: (raw: string) => string;
}

const addText = (raw: string): string => `\n\n${raw}`;
const RULES: Readonly<Record<CommandDialect, Rules>> = {
  patchbay: { first: 1, restInLast: true, missing: 'empty', append: addText },
  opencode: { first: 1, restInLast: true, missing: 'empty', append: addText },
  claude: {
    first: 0,
    restInLast: false,
    missing: 'keep',
    append: (raw) => `\n\nARGUMENTS: ${raw}`,
  },
  codex: { first: 1, restInLast: false, missing: 'empty', append: () => '' },
  cursor: { first: 1, restInLast: false, missing: 'keep', append: addText },
};

/** An escaped `$`, `$$`, `$ARGUMENTS[2]`, `$ARGUMENTS`, `$2`, `$name`. */
const TOKEN =
  /\\\$(?=[\dA-Za-z])|\$\$|\$ARGUMENTS\[(\d+)\]|\$ARGUMENTS\b|\$(\d+)|\$([A-Za-z_]\w*)/g;

/**
 * Puts arguments into a template, in one pass over the template: values are text, they are never looked at again, and
 * nothing is run.
 */
export function substitute(
  template: string,
  args: CommandArguments,
  dialect: CommandDialect,
  names: readonly string[] = [],
): string {
  const rules = rulesFor(template, dialect);
  const { raw, positional, named } = args;
  const highest = Math.max(
    -1,
    ...[...template.matchAll(/(?<!\\)\$(\d+)/g)].map(([, digits]) => Number(digits)),
  );
  let used = false;
  const at = (index: number, token: string, isLast: boolean): string => {
    used = true;
    const value =
      isLast && rules.restInLast ? positional.slice(index).join(' ') : positional[index];
    if (value !== undefined && index >= 0 && index < positional.length) return value;
    return rules.missing === 'keep' ? token : '';
  };
  const replace = (token: string, indexed?: string, digits?: string, name = ''): string => {
    if (token === '\\$') return '$';
    if (token === '$$') return token;
    if (token === '$ARGUMENTS') {
      used = true;
      return raw;
    }
    if (dialect === 'cursor') return token;
    if (indexed !== undefined) return at(Number(indexed), token, false);
    if (digits !== undefined)
      return at(Number(digits) - rules.first, token, Number(digits) === highest);
    const index = names.indexOf(name);
    if (name in named && (index !== -1 || dialect === 'codex')) {
      used = true;
      return named[name]!;
    }
    return index === -1 ? token : at(index, token, false);
  };
  const text = template.replaceAll(TOKEN, (token: string, ...groups: (string | undefined)[]) =>
    replace(token, groups[0], groups[1], groups[2]),
  );
  return used || raw.trim() === '' ? text : text + rules.append(raw);
}

/** What a template asks for that is not done here: a reader should know. */
export function unsupportedIn(template: string, dialect: CommandDialect): readonly string[] {
  const found: string[] = [];
  if (/(?:^|\s)!`[^`]+`|!\{[^}]+\}/.test(template)) found.push('shell-injection-ignored');
  if (dialect === 'claude' && !countsFromZero(template) && /(?<![\w$\\])\$[1-9]/.test(template)) {
    found.push('positional-base-guessed');
  }
  return found;
}

function rulesFor(template: string, dialect: CommandDialect): Rules {
  const rules = RULES[dialect];
  return dialect === 'claude' && !countsFromZero(template) ? { ...rules, first: 1 } : rules;
}

const countsFromZero = (template: string): boolean => /\$0\b|\$ARGUMENTS\[/.test(template);
