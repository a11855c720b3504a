/** Where a kind of media goes: inside the tool message, into a user message behind the step's tool messages, nowhere. */
export type MediaPlace = 'tool' | 'user' | 'none';

/** What a model is given of the media in tool results. What it is not given stands in the text as a short note. */
export interface MediaPolicy {
  readonly image: MediaPlace;
  /** PDF. In a user message no form of it works everywhere, so it is `tool` or nothing. */
  readonly file: Exclude<MediaPlace, 'user'>;
  readonly audio: Exclude<MediaPlace, 'user'>;
}

/**
 * `auto` knows what each of LangChain's provider packages sends. A place means the same one for every model. A function
 * is asked per model, with what its class calls itself (`openai`, `anthropic`, `unknown`, …).
 */
export type MediaOption = 'auto' | MediaPlace | ((providerKind: string) => MediaPolicy);

/**
 * Measured on the wire of nine provider classes: only these two carry media inside a tool message. An image as
 * `image_url` in a user message is the one form that all nine send correctly.
 */
function knownPolicy(kind: string): MediaPolicy {
  switch (kind) {
    case 'anthropic':
      return { image: 'tool', file: 'tool', audio: 'none' };
    case 'googlegenerativeai':
      return { image: 'tool', file: 'tool', audio: 'tool' };
    default:
      return { image: 'user', file: 'none', audio: 'none' };
  }
}

export function mediaPolicy(option: MediaOption, kind: string): MediaPolicy {
  if (typeof option === 'function') return option(kind);
  if (option === 'auto') return knownPolicy(kind);
  const inTool = option === 'tool' ? 'tool' : 'none';
  return { image: option, file: inTool, audio: inTool };
}
