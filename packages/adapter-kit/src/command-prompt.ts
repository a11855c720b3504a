import { PatchbayError, type ExtensionView, type PromptMessage } from '@patchbay/protocols';

import { planResult, type PlannedMedia, type PlanOptions } from './result-plan.ts';

/** A message of a command's prompt, in a form that any framework's message can be made of. */
export interface PlannedMessage {
  readonly role: PromptMessage['role'];
  readonly text: string;
  readonly media: readonly PlannedMedia[];
}

/** How a command is resolved and its prompt shown. */
export interface CommandOptions extends PlanOptions {
  readonly signal?: AbortSignal;
}

/**
 * What the user said, as the prompt of the slash command that it is; `undefined` if it is none.
 * @throws PatchbayError with a message for the user: `command-unknown` and `command-arguments` with
 * `details.suggestions`, or what the source failed with.
 */
export async function planCommand(
  view: Pick<ExtensionView, 'commands'>,
  line: string,
  options: CommandOptions = {},
): Promise<readonly PlannedMessage[] | undefined> {
  const { signal, ...plan } = options;
  const resolved = await view.commands.resolve(line, signal === undefined ? {} : { signal });
  if (resolved === undefined) return undefined;
  if (!resolved.ok) {
    const { code, message, suggestions } = resolved;
    throw new PatchbayError(code, message, { details: { suggestions } });
  }
  return resolved.messages.map(({ role, content }) => {
    const { text, media } = planResult({ content }, plan);
    return { role, text, media };
  });
}
