import { SystemMessage, type ContentBlock } from '@langchain/core/messages';

/**
 * The agent's own system message with further texts behind it, each as a block of its own. Blocks, because joining two
 * plain strings glues them together; existing blocks stay as they are, a `cache_control` on one of them included.
 */
export function withSystemText(system: SystemMessage, texts: readonly string[]): SystemMessage {
  const added = texts.filter((text) => text !== '').map((text) => ({ type: 'text', text }));
  if (added.length === 0) return system;
  return new SystemMessage({
    content: [...blocksOf(system), ...added] as ContentBlock[],
    additional_kwargs: system.additional_kwargs,
    response_metadata: system.response_metadata,
    ...(system.id === undefined ? {} : { id: system.id }),
    ...(system.name === undefined ? {} : { name: system.name }),
  });
}

function blocksOf({ content }: SystemMessage): readonly unknown[] {
  if (typeof content !== 'string') return content;
  return content === '' ? [] : [{ type: 'text', text: content }];
}
