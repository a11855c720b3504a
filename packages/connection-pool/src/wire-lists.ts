import {
  PatchbayError,
  type Listing,
  type Problem,
  type PromptEntry,
  type ResourceEntry,
  type ResourceTemplate,
  type ToolAnnotations,
  type ToolDefinition,
} from '@patchbay/protocols';

import { warning } from './warning.ts';
import { isObject, text, texts } from './wire-content.ts';

type Wire = Readonly<Record<string, unknown>>;

/** A list of MCP: its method, where its entries are, and how one is read. */
export interface WireList<T> {
  readonly method: string;
  readonly field: string;
  /** By what an entry is called; each is there once. */
  readonly key: (item: T) => string;
  /** The entry, or why it is left out. */
  readonly read: (entry: Wire) => T | string;
  /** A server that announces the capability need not know this list. */
  readonly optional?: boolean;
}

const MAX_PAGES = 1_000;
const MAX_ENTRIES = 10_000;
/** Of all pages together, as text. */
const MAX_CHARS: number = 64 * 1024 * 1024;
/** So many entries that are left out are named; the rest is counted. */
export const MAX_NAMED = 20;
const METHOD_NOT_FOUND = -32_601;

/**
 * Reads all pages. One bad entry does not cost the others; a list without an end is cut, a page that cannot be read ends
 * it: what was read is kept, and the problems say what is missing.
 */
export async function readAllPages<T>(
  list: WireList<T>,
  page: (cursor: string | undefined) => Promise<unknown>,
  source: string,
): Promise<Listing<T>> {
  const items = new Map<string, T>();
  const problems: Problem[] = [];
  // The list is there, only not all of it.
  const problem = (why: string) => problems.push(warning(source, `${list.method}: ${why}`));
  let position = 0;
  let chars = 0;
  let leftOut = 0;
  const leaveOut = (which: string, why: string) => {
    if (++leftOut <= MAX_NAMED) problem(`${which} is left out: ${why}.`);
  };
  /** Whether it is one that was not there before. */
  const take = (entry: unknown): boolean => {
    const read = isObject(entry) ? list.read(entry) : 'it is no object';
    const isNew = typeof read === 'string' || !items.has(list.key(read));
    if (typeof read === 'string') leaveOut(`${list.field}[${position}] (${nameOf(entry)})`, read);
    else if (isNew) items.set(list.key(read), read);
    position++;
    return isNew;
  };

  const seen = new Set<string>();
  let ttlMs: number | undefined;
  let incomplete = false;
  let cursor: string | undefined;
  for (let pages = 1; ; pages++) {
    let result: unknown;
    try {
      result = await page(cursor);
    } catch (error) {
      if (list.optional === true && rpcCodeOf(error) === METHOD_NOT_FOUND) break;
      if (pages === 1 || isOver(error)) throw error;
      incomplete = true;
      const why = error instanceof Error ? error.message : String(error);
      problem(`page ${pages} could not be read; the ${items.size} entries before are kept. ${why}`);
      break;
    }
    const { [list.field]: entries, nextCursor, ...hints } = isObject(result) ? result : {};
    const ttl = ttlOf(hints);
    if (ttl !== undefined) ttlMs = Math.min(ttl, ttlMs ?? ttl);
    if (!Array.isArray(entries)) problem(`the answer has no list \`${list.field}\`.`);
    const all: readonly unknown[] = Array.isArray(entries) ? entries : [];
    const before = position;
    const again = all.slice(0, MAX_ENTRIES - position).filter((entry) => !take(entry));
    const next = text(nextCursor);
    // An empty cursor is how some servers say that there is no more.
    const hasMore = next !== undefined && next !== '';
    if (hasMore) chars += JSON.stringify(result).length;
    const isFull =
      (position >= MAX_ENTRIES && (hasMore || all.length > position - before)) || chars > MAX_CHARS;
    const saysNothingNew = again.length > 0 && again.length === all.length;
    const isEndless = hasMore && (seen.has(next) || pages >= MAX_PAGES || saysNothingNew);
    if (!isEndless)
      for (const entry of again) leaveOut(`A second ${nameOf(entry)}`, 'the first one counts');
    if (isFull || isEndless)
      problem(
        `the list was cut after ${items.size} entries on ${pages} pages, because it ${isFull ? 'is too long' : 'has no end'}.`,
      );
    if (!hasMore || isFull || isEndless) break;
    seen.add(next);
    cursor = next;
  }
  if (leftOut > MAX_NAMED) problem(`${leftOut - MAX_NAMED} more entries are left out.`);
  return {
    items: [...items.values()],
    problems,
    ...(incomplete ? { incomplete } : {}),
    ...(ttlMs === undefined ? {} : { ttlMs }),
  };
}

/** Nobody wants the rest any more, or nobody is there to ask. */
const isOver = (error: unknown): boolean =>
  PatchbayError.isInstance(error) && (error.code === 'aborted' || error.code === 'closed');

const rpcCodeOf = (error: unknown): unknown =>
  PatchbayError.isInstance(error) ? error.details?.['rpcCode'] : undefined;

/** How long a page may be taken as it is. (MCP 2026-07-28, "Caching") */
function ttlOf({ ttlMs }: Wire): number | undefined {
  if (typeof ttlMs !== 'number' || Number.isNaN(ttlMs)) return undefined;
  return Math.max(0, ttlMs);
}

export const TOOLS: WireList<ToolDefinition> = {
  method: 'tools/list',
  field: 'tools',
  key: ({ name }) => name,
  read: (entry) => {
    const name = text(entry['name']);
    if (name === undefined || name === '') return 'it has no name';
    const execution = entry['execution'];
    if (isObject(execution) && execution['taskSupport'] === 'required') {
      return 'it can only be run as a task, which is not supported here';
    }
    const { title, description, inputSchema, outputSchema, annotations, _meta: meta } = entry;
    // Field by field: of tools there are thousands.
    const definition: { -readonly [F in keyof ToolDefinition]: ToolDefinition[F] } = {
      name,
      // A tool without a schema, or with `null`, takes no arguments.
      inputSchema: isObject(inputSchema) ? inputSchema : { type: 'object', properties: {} },
    };
    if (typeof title === 'string') definition.title = title;
    if (typeof description === 'string') definition.description = description;
    if (isObject(outputSchema)) definition.outputSchema = outputSchema;
    if (isObject(annotations)) definition.annotations = toAnnotations(annotations);
    if (isObject(meta)) definition.meta = meta;
    return Object.freeze(definition);
  },
};

export const RESOURCES: WireList<ResourceEntry> = {
  method: 'resources/list',
  field: 'resources',
  key: ({ uri }) => uri,
  read: (entry) => {
    const uri = text(entry['uri']);
    if (uri === undefined) return 'it has no uri';
    return {
      uri,
      name: text(entry['name']) ?? uri,
      ...texts(entry, ['title', 'description', 'mimeType']),
      ...(typeof entry['size'] === 'number' ? { size: entry['size'] } : {}),
      ...(isObject(entry['_meta']) ? { meta: entry['_meta'] } : {}),
    };
  },
};

export const TEMPLATES: WireList<ResourceTemplate> = {
  method: 'resources/templates/list',
  field: 'resourceTemplates',
  key: ({ uriTemplate }) => uriTemplate,
  optional: true,
  read: (entry) => {
    const uriTemplate = text(entry['uriTemplate']);
    if (uriTemplate === undefined) return 'it has no uriTemplate';
    return {
      uriTemplate,
      name: text(entry['name']) ?? uriTemplate,
      ...texts(entry, ['title', 'description', 'mimeType']),
      ...(isObject(entry['_meta']) ? { meta: entry['_meta'] } : {}),
    };
  },
};

export const PROMPTS: WireList<PromptEntry> = {
  method: 'prompts/list',
  field: 'prompts',
  key: ({ name }) => name,
  read: (entry) => {
    const name = text(entry['name']);
    if (name === undefined || name === '') return 'it has no name';
    const args = Array.isArray(entry['arguments']) ? entry['arguments'] : [];
    return {
      name,
      ...texts(entry, ['title', 'description']),
      arguments: args.filter(isObject).flatMap((argument) => {
        const argumentName = text(argument['name']);
        if (argumentName === undefined) return [];
        return [
          {
            name: argumentName,
            ...texts(argument, ['description']),
            ...(argument['required'] === true ? { required: true } : {}),
          },
        ];
      }),
      ...(isObject(entry['_meta']) ? { meta: entry['_meta'] } : {}),
    };
  },
};

const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const;

function toAnnotations(wire: Wire): ToolAnnotations {
  const claimed: { -readonly [F in keyof ToolAnnotations]: ToolAnnotations[F] } = texts(wire, [
    'title',
  ]);
  for (const hint of HINTS) {
    const value = wire[hint];
    if (typeof value === 'boolean') claimed[hint] = value;
  }
  return claimed;
}

function nameOf(entry: unknown): string {
  const name = isObject(entry) ? (entry['name'] ?? entry['uri']) : undefined;
  return typeof name === 'string' ? JSON.stringify(name.slice(0, 100)) : 'without a name';
}
