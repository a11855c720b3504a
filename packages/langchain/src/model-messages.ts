import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages';
import type { PlannedMedia } from '@patchbay/adapter-kit';

import type { MediaPolicy } from './media-policy.ts';
import type { MediaOf } from './result-media.ts';

const OPEN_CALL =
  'Error: no result was recorded for this call; it may or may not have taken effect.';

/**
 * The history as one provider takes it. The state keeps plain text with the media beside it in the artifact, so nothing
 * stored depends on a provider; here, for one request, media go where this model reads them, and a call without a result
 * (its run was aborted, or a person rejected another call of the same step) gets one that says so, because providers
 * refuse a history with an open call.
 */
export function shapeMessages(
  messages: readonly BaseMessage[],
  policy: MediaPolicy,
  mediaOf: MediaOf,
): BaseMessage[] {
  const answered = new Set(
    messages.filter((message) => ToolMessage.isInstance(message)).map((m) => m.tool_call_id),
  );
  const out: BaseMessage[] = [];
  // Images for the user role wait until the step's last tool message: its results belong together.
  let waiting: BaseMessage[] = [];
  for (const message of messages) {
    if (ToolMessage.isInstance(message)) {
      const media = mediaOf(message);
      out.push(
        withMedia(
          message,
          media.filter(({ kind }) => policy[kind] === 'tool'),
        ),
      );
      const toUser = media.filter(({ kind }) => kind === 'image' && policy.image === 'user');
      waiting.push(...toUser.map((image) => imageMessage(message, image)));
      continue;
    }
    out.push(...waiting, message);
    waiting = [];
    if (AIMessage.isInstance(message)) out.push(...closingMessages(message, answered));
  }
  out.push(...waiting);
  return out;
}

function withMedia(message: ToolMessage, media: readonly PlannedMedia[]): ToolMessage {
  if (media.length === 0) return message;
  const { id, name, status, tool_call_id, content } = message;
  return new ToolMessage({
    content: [
      { type: 'text', text: typeof content === 'string' ? content : message.text },
      ...media.map(({ kind, mimeType, data }) => ({ type: kind, mimeType, data })),
    ],
    tool_call_id,
    ...(id === undefined ? {} : { id }),
    ...(name === undefined ? {} : { name }),
    ...(status === undefined ? {} : { status }),
  });
}

/** The one form of an image in a user message that every provider package sends correctly. */
export const dataUrlBlock = ({ mimeType, data }: PlannedMedia) => ({
  type: 'image_url' as const,
  image_url: { url: `data:${mimeType};base64,${data}` },
});

function imageMessage(message: ToolMessage, image: PlannedMedia): HumanMessage {
  return new HumanMessage({
    content: [
      {
        type: 'text',
        text: `Image returned by the tool "${message.name}" (call ${message.tool_call_id}):`,
      },
      dataUrlBlock(image),
    ],
  });
}

function closingMessages(message: AIMessage, answered: ReadonlySet<string>): ToolMessage[] {
  return (message.tool_calls ?? []).flatMap(({ id, name }) =>
    id === undefined || answered.has(id)
      ? []
      : new ToolMessage({ content: OPEN_CALL, status: 'error', name, tool_call_id: id }),
  );
}
