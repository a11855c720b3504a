import type { ToolMessage } from '@langchain/core/messages';
import { planResult, type PlannedMedia } from '@patchbay/adapter-kit';

import { artifactOf, type ToolArtifact } from './tool-message.ts';

/** The media of a message that may be shown to a model. */
export type MediaOf = (message: ToolMessage) => readonly PlannedMedia[];

/** Looks at each result once, for media can be many megabytes and a history is sent many times. */
export function makeMediaOf(maxMediaBytes?: number): MediaOf {
  const known = new WeakMap<ToolArtifact, readonly PlannedMedia[]>();
  return (message) => {
    const artifact = artifactOf(message);
    if (artifact === undefined) return [];
    let media = known.get(artifact);
    if (media === undefined) {
      const plan = planResult(artifact, maxMediaBytes === undefined ? {} : { maxMediaBytes });
      known.set(artifact, (media = plan.media));
    }
    return media;
  };
}
