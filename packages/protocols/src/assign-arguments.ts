import type { CommandArgument } from './command-resource.ts';

/** What was typed, by the arguments that a command declares. */
export interface AssignedArguments {
  /** By name, in the order of the declaration. Has no prototype, so that every name is plain. An empty text is a value. */
  readonly values: Readonly<Record<string, string>>;
  /** Declared as required, and not given. */
  readonly missing: readonly string[];
}

/**
 * Gives the words behind a command to the arguments that it declares: `name=value`, `--name=value` and `--name value` by
 * name, the other words in the declared order. A name that is not declared is a word like any other.
 */
export function assignArguments(
  declared: readonly CommandArgument[],
  words: readonly string[],
  options: {
    /** `last` (default): the last argument takes all words that are left, so that a sentence needs no quotes. */
    readonly surplus?: 'last' | 'dropped';
  } = {},
): AssignedArguments {
  const names = new Set(declared.map(({ name }) => name));
  const given = new Map<string, string>();
  const rest: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const next = words[i + 1];
    const assigned = /^(?:--)?([^=\s]+)=([\s\S]*)$/.exec(word);
    const option = /^--(\S+)$/.exec(word)?.[1];
    if (assigned !== null && names.has(assigned[1]!)) given.set(assigned[1]!, assigned[2]!);
    else if (option !== undefined && names.has(option) && next !== undefined) {
      given.set(option, next);
      i++;
    } else rest.push(word);
  }
  const open = declared.filter(({ name }) => !given.has(name));
  for (const [i, { name }] of open.entries()) {
    if (i >= rest.length) break;
    const last = i === open.length - 1 && options.surplus !== 'dropped';
    given.set(name, last ? rest.slice(i).join(' ') : rest[i]!);
  }
  const values = Object.create(null) as Record<string, string>;
  for (const { name } of declared) if (given.has(name)) values[name] = given.get(name)!;
  const missing = declared.filter(({ name, required }) => required === true && !given.has(name));
  return { values, missing: missing.map(({ name }) => name) };
}
