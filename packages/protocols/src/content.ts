/** Text. */
export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  readonly meta?: Readonly<Record<string, unknown>>;
  /** For whom it is, how important, from when: as MCP's `annotations`. Hints, never shown to a model. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** An image, an audio clip or any other binary, base64 as it came from its source. */
export interface MediaPart {
  readonly type: 'image' | 'audio' | 'file';
  /** Base64, without a data URL prefix. */
  readonly data: string;
  readonly mimeType: string;
  readonly name?: string;
  readonly meta?: Readonly<Record<string, unknown>>;
  /** For whom it is, how important, from when: as MCP's `annotations`. Hints, never shown to a model. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** The contents of a resource, inline: `text` or `data` (base64), never both. */
export interface ResourcePart {
  readonly type: 'resource';
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly data?: string;
  readonly meta?: Readonly<Record<string, unknown>>;
  /** For whom it is, how important, from when: as MCP's `annotations`. Hints, never shown to a model. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** A pointer to a resource. It is not fetched. */
export interface ResourceLinkPart {
  readonly type: 'resource_link';
  readonly uri: string;
  readonly name?: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly meta?: Readonly<Record<string, unknown>>;
  /** For whom it is, how important, from when: as MCP's `annotations`. Hints, never shown to a model. */
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** A kind that this version does not know. It is kept whole, and shown to a model as a note. */
export interface UnknownPart {
  readonly type: string & {};
  readonly raw: unknown;
}

/**
 * One piece of a result, a prompt or a resource. The union is open: treat a `type` you do not know as a note.
 * Independent of any SDK's shapes; what came from MCP is converted at the edge.
 */
export type ContentPart = TextPart | MediaPart | ResourcePart | ResourceLinkPart | UnknownPart;

/** One message of a prompt. */
export interface PromptMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly ContentPart[];
}

export const isTextPart = (part: ContentPart): part is TextPart => isKnown(part, 'text');
export const isMediaPart = (part: ContentPart): part is MediaPart =>
  isKnown(part, 'image', 'audio', 'file');
export const isResourcePart = (part: ContentPart): part is ResourcePart =>
  isKnown(part, 'resource');
export const isResourceLinkPart = (part: ContentPart): part is ResourceLinkPart =>
  isKnown(part, 'resource_link');

/** An unknown part may carry a known type with a shape that was not understood: its `raw` tells. */
function isKnown(part: ContentPart, ...types: string[]): boolean {
  return types.includes(part.type) && !('raw' in part);
}
