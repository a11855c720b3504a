import type { ContentPart, PromptMessage, ToolResult } from '@patchbay/protocols';

type Wire = Readonly<Record<string, unknown>>;

/** A content block of MCP as a part. A kind or a shape that is not known is kept whole, never dropped. */
function toContentPart(block: unknown): ContentPart {
  if (!isObject(block)) return { type: 'unknown', raw: block };
  const meta = besides(block);
  const unknown = (): ContentPart => ({ type: text(block['type']) ?? 'unknown', raw: block });
  switch (block['type']) {
    case 'text':
      return text(block['text']) === undefined
        ? unknown()
        : { type: 'text', text: block['text'] as string, ...meta };
    case 'image':
    case 'audio': {
      const [data, mimeType] = [text(block['data']), text(block['mimeType'])];
      return data === undefined || mimeType === undefined
        ? unknown()
        : { type: block['type'], data, mimeType, ...meta };
    }
    case 'resource':
      return toResourcePart(block['resource'], meta) ?? unknown();
    case 'resource_link': {
      const uri = text(block['uri']);
      if (uri === undefined) return unknown();
      const size = typeof block['size'] === 'number' ? { size: block['size'] } : {};
      return {
        type: 'resource_link',
        uri,
        ...texts(block, ['name', 'title', 'description', 'mimeType']),
        ...size,
        ...meta,
      };
    }
    default:
      return unknown();
  }
}

/** What a program may want to know, and a model is not shown. */
interface Besides {
  readonly meta?: Wire;
  readonly annotations?: Wire;
}

function besides({ _meta: meta, annotations }: Wire): Besides {
  return {
    ...(isObject(meta) ? { meta } : {}),
    ...(isObject(annotations) ? { annotations } : {}),
  };
}

/** The contents of a resource; `undefined` for what is none. `block`: of what it is embedded in. */
export function toResourcePart(contents: unknown, block: Besides = {}): ContentPart | undefined {
  if (!isObject(contents)) return undefined;
  const uri = text(contents['uri']);
  const own = besides(contents);
  const [inline, blob] = [text(contents['text']), text(contents['blob'])];
  if (uri === undefined || (inline === undefined && blob === undefined)) return undefined;
  return {
    type: 'resource',
    uri,
    ...texts(contents, ['mimeType']),
    ...(inline === undefined ? { data: blob! } : { text: inline }),
    ...own,
    ...block,
    ...(own.meta === undefined || block.meta === undefined
      ? {}
      : { meta: { ...own.meta, ...block.meta } }),
  };
}

/** A result of `tools/call`. Whatever of it is not as it should be is left as it is; nothing is thrown. */
export function toToolResult(result: unknown): ToolResult {
  if (!isObject(result)) return { content: [{ type: 'unknown', raw: result }] };
  const { content, structuredContent, isError, _meta: meta } = result;
  return {
    content: Array.isArray(content) ? content.map(toContentPart) : [],
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === true ? { isError } : {}),
    ...(isObject(meta) ? { meta } : {}),
  };
}

/** Messages of `prompts/get`. */
export function toPromptMessages(result: unknown): readonly PromptMessage[] {
  const messages = isObject(result) && Array.isArray(result['messages']) ? result['messages'] : [];
  return messages.map((message: unknown): PromptMessage => {
    if (!isObject(message)) return { role: 'user', content: [{ type: 'unknown', raw: message }] };
    const { role, content } = message;
    const parts = Array.isArray(content) ? content : [content];
    return {
      role: role === 'assistant' ? 'assistant' : 'user',
      content: parts.map(toContentPart),
    };
  });
}

export function isObject(value: unknown): value is Wire {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

/** The fields of an object that are texts. */
export function texts<K extends string>(
  from: Wire,
  keys: readonly K[],
): { readonly [P in K]?: string } {
  const found: { [P in K]?: string } = {};
  for (const key of keys) {
    const value = from[key];
    if (typeof value === 'string') found[key] = value;
  }
  return found;
}
