import {
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
  /** The entry, or why it is left out. */
  readonly read: (entry: Wire) => T | string;
}

const MAX_PAGES = 1_000;
const MAX_ENTRIES = 10_000;
/** Of all pages together, as text. */
const MAX_CHARS: number = 64 * 1024 * 1024;

/** Reads all pages. One bad entry does not cost the others; a list without an end is cut, and says so. */
export async function readAllPages<T>(
  list: WireList<T>,
  page: (cursor: string | undefined) => Promise<unknown>,
  source: string,
): Promise<Listing<T>> {
  const items: T[] = [];
  const problems: Problem[] = [];
  // The list is there, only not all of it.
  const problem = (why: string) => problems.push(warning(source, `${list.method}: ${why}`));
  const seen = new Set<string>();
  let position = 0;
  let chars = 0;
  let cursor: string | undefined;
  for (let pages = 1; ; pages++) {
    const result = await page(cursor);
    const entries = isObject(result) ? result[list.field] : undefined;
    if (!Array.isArray(entries)) problem(`the answer has no list \`${list.field}\`.`);
    for (const entry of Array.isArray(entries) ? entries : []) {
      const read = isObject(entry) ? list.read(entry) : 'it is no object';
      if (typeof read !== 'string') items.push(read);
      else problem(`${list.field}[${position}] (${nameOf(entry)}) is left out: ${read}.`);
      position++;
    }
    const next = isObject(result) ? text(result['nextCursor']) : undefined;
    if (next === undefined) break;
    chars += JSON.stringify(result).length;
    const isFull = items.length >= MAX_ENTRIES || chars > MAX_CHARS;
    if (seen.has(next) || pages >= MAX_PAGES || isFull) {
      problem(
        `the list was cut after ${items.length} entries on ${pages} pages, because it has no end.`,
      );
      break;
    }
    seen.add(next);
    cursor = next;
  }
  return { items: items.slice(0, MAX_ENTRIES), problems };
}

export const TOOLS: WireList<ToolDefinition> = {
  method: 'tools/list',
  field: 'tools',
  read: (entry) => {
    const name = text(entry['name']);
    if (name === undefined || name === '') return 'it has no name';
    const execution = entry['execution'];
    if (isObject(execution) && execution['taskSupport'] === 'required') {
      return 'it can only be run as a task, which is not supported';
    }
    const { inputSchema, outputSchema, annotations, _meta: meta } = entry;
    return Object.freeze({
      name,
      ...texts(entry, ['title', 'description']),
      // A tool without a schema, or with `null`, takes no arguments.
      inputSchema: isObject(inputSchema) ? inputSchema : { type: 'object', properties: {} },
      ...(isObject(outputSchema) ? { outputSchema } : {}),
      ...(isObject(annotations) ? { annotations: toAnnotations(annotations) } : {}),
      ...(isObject(meta) ? { meta } : {}),
    });
  },
};

export const RESOURCES: WireList<ResourceEntry> = {
  method: 'resources/list',
  field: 'resources',
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
  read: (entry) => {
    const uriTemplate = text(entry['uriTemplate']);
    if (uriTemplate === undefined) return 'it has no uriTemplate';
    return {
      uriTemplate,
      name: text(entry['name']) ?? uriTemplate,
      ...texts(entry, ['title', 'description', 'mimeType']),
    };
  },
};

export const PROMPTS: WireList<PromptEntry> = {
  method: 'prompts/list',
  field: 'prompts',
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
    };
  },
};

function toAnnotations(wire: Wire): ToolAnnotations {
  const hints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const;
  return {
    ...texts(wire, ['title']),
    ...Object.fromEntries(
      hints.flatMap((hint) => (typeof wire[hint] === 'boolean' ? [[hint, wire[hint]]] : [])),
    ),
  };
}

function nameOf(entry: unknown): string {
  const name = isObject(entry) ? (entry['name'] ?? entry['uri']) : undefined;
  return typeof name === 'string' ? JSON.stringify(name.slice(0, 100)) : 'without a name';
}
