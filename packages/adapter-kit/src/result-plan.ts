import {
  isMediaPart,
  isResourceLinkPart,
  isResourcePart,
  isTextPart,
  type ContentPart,
  type ToolResult,
} from '@patchbay/protocols';

import { head } from './clip.ts';

/** How a result is shown. */
export interface PlanOptions {
  /** Characters of text that a model gets. 0 and `Infinity`: no limit. Default 100,000. */
  readonly maxResultChars?: number;
  /** What a model reads where there are both text and structured content. Default `content`: the text. */
  readonly structured?: 'content' | 'structured' | 'both';
  /** Media larger than this stay out and are only mentioned. 0: all of them do. Default 5,000,000. */
  readonly maxMediaBytes?: number;
}

/** Media of a result, in a form that any provider's part can be made of. */
export interface PlannedMedia {
  readonly kind: 'image' | 'audio' | 'file';
  /** Valid base64. */
  readonly data: string;
  /** PNG, JPEG, GIF, WebP, PDF, or audio: what providers take. */
  readonly mimeType: string;
  readonly name?: string;
}

/** What a model is shown of a result. The result itself is kept by whoever planned. */
export interface ResultPlan {
  /** Never empty, never with base64 in it; begins with `Error:` where the tool says that it failed. */
  readonly text: string;
  readonly media: readonly PlannedMedia[];
  readonly isError: boolean;
  /** How many characters there are, and how many of them are in `text`; only where something was cut. */
  readonly cut?: { readonly total: number; readonly shown: number };
  /** Parts that could not be used, for people. */
  readonly problems: readonly string[];
}

/** What providers take. One part of another type makes them refuse the whole request, so that stays a note. */
const ACCEPTED = /^(?:image\/(?:png|jpeg|gif|webp)|application\/pdf|audio\/[\w.+-]+)$/iu;
const DEFAULT_MAX_RESULT_CHARS = 100_000;
const DEFAULT_MAX_MEDIA_BYTES = 5_000_000;

/** Plans what a model is shown of a result. Never throws, whatever the result is. `meta` never gets into it. */
export function planResult(result: ToolResult, options: PlanOptions = {}): ResultPlan {
  const { structured = 'content', maxMediaBytes = DEFAULT_MAX_MEDIA_BYTES } = options;
  const parts: readonly unknown[] = Array.isArray(result?.content) ? result.content : [];
  const planned = parts.map((part) => planPart(part, maxMediaBytes));
  const hasText = planned.some(({ said }) => said === true);
  const data = structuredText(result?.structuredContent);
  const withData = data !== undefined && (structured !== 'content' || !hasText);
  const pieces: string[] = [];
  const media: PlannedMedia[] = [];
  const problems: string[] = [];
  for (const part of planned) {
    const isReplaced = withData && structured === 'structured' && part.said === true;
    if (part.text !== '' && !isReplaced) pieces.push(part.text);
    if (part.media !== undefined) media.push(part.media);
    if (part.problem !== undefined) problems.push(part.problem);
  }
  if (withData && data !== '') pieces.push(data);
  const isError = result?.isError === true;
  const nothing = isError ? 'The tool failed without saying why.' : '(no output)';
  const { text, cut } = joined(pieces.length === 0 ? [nothing] : pieces, options.maxResultChars);
  return {
    text: isError && !text.startsWith('Error:') ? `Error: ${text}` : text,
    media,
    isError,
    ...(cut === undefined ? {} : { cut }),
    problems,
  };
}

interface PlannedPart {
  readonly text: string;
  /** Text of the tool itself, not a note about something else. */
  readonly said?: boolean;
  readonly media?: PlannedMedia;
  readonly problem?: string;
}

function planPart(given: unknown, maxMediaBytes: number): PlannedPart {
  if (typeof given !== 'object' || given === null || !('type' in given))
    return unusable('a part', 'it has no type');
  const part = given as ContentPart;
  const what = typeof part.type === 'string' ? part.type : 'part';
  if (isTextPart(part)) {
    return typeof part.text === 'string'
      ? { text: part.text, said: true }
      : unusable(what, 'it has no text');
  }
  if (isMediaPart(part))
    return planMedia(part.type, part.data, part.mimeType, part.name, maxMediaBytes);
  if (isResourcePart(part)) {
    if (typeof part.text === 'string')
      return { text: `[${named('resource', part.uri)}]\n${part.text}`, said: true };
    const mimeType: unknown = part.mimeType ?? 'application/octet-stream';
    return planMedia(mediaKind(mimeType), part.data, mimeType, part.uri, maxMediaBytes, 'resource');
  }
  if (isResourceLinkPart(part)) return { text: linkNote({ ...part }) };
  return unusable(
    `part of type ${JSON.stringify(what)}`,
    'it is of no kind, or has no shape, that is known',
  );
}

function planMedia(
  kind: PlannedMedia['kind'],
  data: unknown,
  mimeType: unknown,
  name: unknown,
  maxBytes: number,
  noun: string = kind,
): PlannedPart {
  const what = named(noun, name);
  if (typeof mimeType !== 'string' || !/^[\w.+-]+\/[\w.+-]+/u.test(mimeType))
    return unusable(what, 'it has no media type');
  if (!isBase64(data)) return unusable(`${what} ${mimeType}`, 'its data is not base64');
  const bytes =
    Math.floor((data.length * 3) / 4) - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0);
  const note = `${what} ${mimeType}, ${bytes} bytes`;
  if (!ACCEPTED.test(mimeType)) return { text: `[${note}; not shown]` };
  if (bytes > maxBytes)
    return { text: `[${note}; not shown${maxBytes > 0 ? `, more than ${maxBytes} bytes` : ''}]` };
  return {
    text: `[${note}]`,
    media: { kind, data, mimeType, ...(typeof name === 'string' ? { name: lastStep(name) } : {}) },
  };
}

/** A file name, of a URI too. */
function lastStep(name: string): string {
  return name.split('/').at(-1) || name;
}

function unusable(what: string, why: string): PlannedPart {
  return { text: `[${what} that cannot be shown: ${why}]`, problem: `${what}: ${why}` };
}

/** What is no text, in a part that others wrote, is left out. */
function linkNote(part: Readonly<Record<string, unknown>>): string {
  const { uri, name, title, description, mimeType, size } = part;
  const facts = [mimeType, typeof size === 'number' ? `${size} bytes` : undefined].filter(isText);
  const label = [title ?? name, isText(uri) ? `<${uri}>` : '', facts.join(', ')]
    .filter(isText)
    .join(' ');
  return `[${named('resource link', label)}${isText(description) ? `: ${description}` : ''}]`;
}

function named(noun: string, name: unknown): string {
  return isText(name) ? `${noun} ${name}` : noun;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function mediaKind(mimeType: unknown): PlannedMedia['kind'] {
  const [kind] = typeof mimeType === 'string' ? mimeType.split('/', 1) : [];
  return kind === 'image' || kind === 'audio' ? kind : 'file';
}

function isBase64(data: unknown): data is string {
  return (
    typeof data === 'string' &&
    data !== '' &&
    data.length % 4 === 0 &&
    /^[A-Za-z0-9+/]+={0,2}$/u.test(data)
  );
}

function structuredText(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  try {
    return JSON.stringify(value);
  } catch {
    return '[structured content that cannot be shown: it is no JSON]';
  }
}

/** Joined up to the limit: what is beyond is counted, not copied. */
function joined(
  pieces: readonly string[],
  limit: number = DEFAULT_MAX_RESULT_CHARS,
): Pick<ResultPlan, 'text' | 'cut'> {
  const max = Number.isFinite(limit) && limit > 0 ? limit : Infinity;
  const total = pieces.reduce((sum, piece) => sum + piece.length, pieces.length - 1);
  if (total <= max) return { text: pieces.join('\n') };
  const shown: string[] = [];
  let room = max;
  for (const piece of pieces) {
    if (room <= 0) break;
    shown.push(head(piece, room));
    room -= piece.length + 1;
  }
  const text = shown.join('\n');
  const note = `[cut: ${total - text.length} of ${total} characters are left out here; the whole result is kept outside of the prompt]`;
  return { text: `${text}\n${note}`, cut: { total, shown: text.length } };
}
