import {
  AIMessage,
  coerceMessageLikeToMessage,
  HumanMessage,
  type BaseMessage,
  type BaseMessageLike,
} from '@langchain/core/messages';
import { planCommand, type CommandOptions, type PlannedMessage } from '@patchbay/adapter-kit';
import type { ExtensionView } from '@patchbay/protocols';

import { dataUrlBlock } from './model-messages.ts';

/**
 * The same messages, where the last one is a slash command of the user with the command's prompt in its place: what an
 * agent is invoked with. Images come along; other media are a note in the text.
 * @throws PatchbayError with a message for the user, where there is no such command or it cannot be used so
 */
export async function commands(
  view: ExtensionView,
  messages: readonly BaseMessageLike[],
  options: CommandOptions = {},
): Promise<BaseMessage[]> {
  const before = messages.map((message) => coerceMessageLikeToMessage(message));
  const last = before.at(-1);
  const planned = HumanMessage.isInstance(last)
    ? await planCommand(view, last.text, options)
    : undefined;
  return planned === undefined ? before : [...before.slice(0, -1), ...planned.map(asMessage)];
}

function asMessage({ role, text, media }: PlannedMessage): BaseMessage {
  if (role === 'assistant') return new AIMessage(text);
  const images = media.filter(({ kind }) => kind === 'image').map(dataUrlBlock);
  return new HumanMessage({
    content: images.length === 0 ? text : [{ type: 'text', text }, ...images],
  });
}
