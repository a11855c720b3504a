import { PatchbayError, type CommandArguments, type PromptEntry } from '@patchbay/protocols';

/**
 * The arguments of a prompt from what was typed: named ones by name, the rest in the declared order. An empty value that
 * was given is a value.
 * @throws PatchbayError `command-arguments` that names what is missing
 */
export function promptArguments(
  prompt: PromptEntry,
  args: CommandArguments,
  server: string,
): Readonly<Record<string, string>> {
  const declared = prompt.arguments ?? [];
  const names = new Set(declared.map(({ name }) => name));
  const values: Record<string, string> = {};
  const positional: string[] = [];
  for (let i = 0; i < args.positional.length; i++) {
    const word = args.positional[i]!;
    const [, name, value] = /^(?:--)?([^=\s]+)=([\s\S]*)$/.exec(word) ?? [];
    const option = /^--(\S+)$/.exec(word)?.[1];
    const next = args.positional[i + 1];
    if (name !== undefined && names.has(name)) {
      values[name] = value!;
    } else if (option !== undefined && names.has(option) && next !== undefined) {
      values[option] = next;
      i++;
    } else {
      positional.push(word);
    }
  }
  const open = declared.filter(({ name }) => !(name in values));
  for (const [i, { name }] of open.entries()) {
    const word = positional[i];
    if (word === undefined) break;
    // The last argument takes the rest, so that a sentence needs no quotes.
    values[name] = i === open.length - 1 ? positional.slice(i).join(' ') : word;
  }
  const missing = declared
    .filter(({ name, required }) => required === true && !(name in values))
    .map(({ name }) => name);
  if (missing.length > 0) {
    throw new PatchbayError(
      'command-arguments',
      `/${prompt.name} of "${server}" needs ${missing.map((name) => `\`${name}\``).join(', ')}. Give it as ${missing[0]}=value or in order.`,
      { source: server, details: { missing } },
    );
  }
  return values;
}
