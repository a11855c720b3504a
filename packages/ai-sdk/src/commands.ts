import { planCommand, type CommandOptions, type PlannedMessage } from '@patchbay/adapter-kit';
import type { ExtensionView } from '@patchbay/protocols';
import type { ModelMessage } from 'ai';

import { userText } from './instructions.ts';
import { userMessage } from './user-message.ts';

/**
 * The same messages, where the last one is a slash command of the user with the command's prompt in its place: hand them
 * to the model, and store them like that.
 * @throws PatchbayError with a message for the user, where there is no such command or it cannot be used so
 */
export async function commands(
  view: ExtensionView,
  messages: readonly ModelMessage[],
  options: CommandOptions = {},
): Promise<ModelMessage[]> {
  const line = messages.at(-1)?.role === 'user' ? userText(messages) : undefined;
  const planned = line === undefined ? undefined : await planCommand(view, line, options);
  if (planned === undefined) return [...messages];
  return [...messages.slice(0, -1), ...planned.map(asMessage)];
}

function asMessage({ role, text, media }: PlannedMessage): ModelMessage {
  return role === 'assistant' ? { role, content: text } : userMessage(text, media);
}
