import {
  isMediaPart,
  isResourcePart,
  type ContentPart,
  type ToolResult,
} from '@patchbay/protocols';

/** A piece of media that a provider accepts. */
export interface ResultMedia {
  readonly kind: 'image' | 'file' | 'audio';
  readonly mimeType: string;
  /** Base64. */
  readonly data: string;
}

/** What every provider takes. One part of another type makes it refuse the whole request, so that stays a note. */
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The media in a result that may be shown to a model; a blob of a resource counts as what its type says. */
export function mediaOf(result: Pick<ToolResult, 'content'>): readonly ResultMedia[] {
  return result.content.flatMap((part) => mediaFrom(part) ?? []);
}

function mediaFrom(part: ContentPart): ResultMedia | undefined {
  if (!isMediaPart(part) && !isResourcePart(part)) return undefined;
  const { data } = part;
  const mimeType = part.mimeType?.split(';')[0]?.trim().toLowerCase() ?? '';
  const kind = kindOf(mimeType);
  if (kind === undefined || typeof data !== 'string' || !isBase64(data)) return undefined;
  return { kind, mimeType, data };
}

function kindOf(mimeType: string): ResultMedia['kind'] | undefined {
  if (IMAGES.includes(mimeType)) return 'image';
  if (mimeType === 'application/pdf') return 'file';
  return mimeType.startsWith('audio/') ? 'audio' : undefined;
}

/** Looks at both ends only: media can be many megabytes, and a provider decodes them anyway. */
function isBase64(data: string): boolean {
  const sample = data.length <= 2048 ? data : data.slice(0, 1024) + data.slice(-1024);
  return data.length % 4 !== 1 && BASE64.test(sample);
}
