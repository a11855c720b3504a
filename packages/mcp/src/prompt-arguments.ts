import {
  assignArguments,
  PatchbayError,
  type CommandArguments,
  type PromptEntry,
} from '@patchbay/protocols';

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
  const { values, missing } = assignArguments(prompt.arguments ?? [], args.positional);
  if (missing.length > 0) {
    throw new PatchbayError(
      'command-arguments',
      `/${prompt.name} of "${server}" needs ${missing.map((name) => `\`${name}\``).join(', ')}. Give it as ${missing[0]}=value or in order.`,
      { source: server, details: { missing } },
    );
  }
  return values;
}
