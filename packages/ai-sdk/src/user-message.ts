import type { PlannedMedia } from '@patchbay/adapter-kit';
import type { UserModelMessage } from 'ai';

/** A text and what goes with it, as a message of the user: the same parts in 6 and 7. */
export function userMessage(text: string, media: readonly PlannedMedia[]): UserModelMessage {
  const files = media.map(({ data, mimeType, name }) => ({
    type: 'file' as const,
    data,
    mediaType: mimeType,
    ...(name === undefined ? {} : { filename: name }),
  }));
  return { role: 'user', content: [{ type: 'text', text }, ...files] };
}
