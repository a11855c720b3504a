import { instructionText } from '@patchbay/adapter-kit';
import type { InstructionBlock } from '@patchbay/protocols';
import type { ModelMessage, SystemModelMessage } from 'ai';

/** A system prompt as the AI SDK takes it. */
export type Instructions = string | SystemModelMessage | SystemModelMessage[];

/** A system message for each kind of block that there is: the static one first, so that it stays in a prompt cache. */
export function systemMessages(blocks: readonly InstructionBlock[]): SystemModelMessage[] {
  const { static: fixed, dynamic } = instructionText(blocks);
  return [...asMessages(fixed), ...asMessages(dynamic)];
}

export function asMessages(instructions: Instructions | undefined): SystemModelMessage[] {
  if (instructions === undefined || instructions === '') return [];
  if (typeof instructions === 'string') return [{ role: 'system', content: instructions }];
  return Array.isArray(instructions) ? instructions : [instructions];
}

/** The newest text of the user. */
export function userText(messages: readonly ModelMessage[]): string | undefined {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  if (content === undefined || typeof content === 'string') return content;
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length === 0 ? undefined : texts.join('\n');
}
