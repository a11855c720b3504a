import type { ToolMessage } from '@langchain/core/messages';
import { planResult, type PlannedMedia } from '@patchbay/adapter-kit';

import { artifactOf, type ToolArtifact } from './tool-message.ts';

/** The media of a message that may be shown to a model. */
export type MediaOf = (message: ToolMessage) => readonly PlannedMedia[];

/** What every provider takes. One part of another type makes it refuse the whole request, so that stays a note. */
const IMAGES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** Looks at each result once, for media can be many megabytes and a history is sent many times. */
export function makeMediaOf(maxMediaBytes?: number): MediaOf {
  const known = new WeakMap<ToolArtifact, readonly PlannedMedia[]>();
  return (message) => {
    const artifact = artifactOf(message);
    if (artifact === undefined) return [];
    let media = known.get(artifact);
    if (media === undefined) {
      const plan = planResult(artifact, maxMediaBytes === undefined ? {} : { maxMediaBytes });
      known.set(artifact, (media = plan.media.filter(isAccepted)));
    }
    return media;
  };
}

function isAccepted({ kind, mimeType }: PlannedMedia): boolean {
  if (kind === 'image') return IMAGES.includes(mimeType);
  return kind === 'audio' || mimeType === 'application/pdf';
}
