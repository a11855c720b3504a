import { EVENT_ID, FAILSAFE_SCHEMA, getScalarValue, load, parseEvents, type Event } from 'js-yaml';

import type { Note } from './fence.ts';

/** Frontmatter as written: every scalar is text, maps and lists nest. Has no prototype, so that every key is plain. */
export type FrontmatterData = { [key: string]: FrontmatterValue | undefined };
export type FrontmatterValue = string | FrontmatterValue[] | FrontmatterData;

/** Text only: nothing is executed, nothing is converted; aliases and depth are bounded. */
const OPTIONS = { schema: FAILSAFE_SCHEMA, maxAliases: 0, maxDepth: 20 };

/**
 * Reads a block of YAML, and as much as possible of one that is none: entry by entry, so that damage in one entry never
 * costs another. Never throws.
 */
export function readYaml(head: string, headLine: number, note: Note): FrontmatterData {
  if (head.trim() === '') return empty();
  try {
    return parse(head);
  } catch (error) {
    const line = headLine + lineOf(error);
    if (isDuplicate(error)) {
      try {
        const data = loadMap(head, { json: true });
        note('duplicate-key', line);
        return data;
      } catch {
        // Something else is wrong too: entry by entry.
      }
    }
    note('invalid-yaml', line);
    return readEntries(head, headLine, note);
  }
}

/** The parser reads; what it read is put together here, because `load` takes as long for that as for the reading. */
function parse(text: string): FrontmatterData {
  return composed(parseEvents(text, { maxDepth: OPTIONS.maxDepth }), text) ?? loadMap(text);
}

/** One map, of maps, lists and text alone. `undefined`: there is more to it, and `load` has to say what it means. */
function composed(events: readonly Event[], text: string): FrontmatterData | undefined {
  let at = 1;
  let simple = true;
  const next = (): FrontmatterValue => {
    const event = events[at++]!;
    if (!('tagStart' in event) || event.tagStart >= 0 || event.anchorStart >= 0) simple = false;
    if (event.type === EVENT_ID.SCALAR) return getScalarValue(text, event);
    if (event.type === EVENT_ID.SEQUENCE) {
      const list: FrontmatterValue[] = [];
      while (events[at]!.type !== EVENT_ID.POP) list.push(next());
      at++;
      return list;
    }
    const map = empty();
    if (event.type !== EVENT_ID.MAPPING) return map;
    while (events[at]!.type !== EVENT_ID.POP) {
      const key = next();
      const value = next();
      if (typeof key !== 'string' || key in map) simple = false;
      else map[key] = value;
    }
    at++;
    return map;
  };
  if (events.length === 0) return undefined;
  const value = next();
  // Behind it comes the end of the document, and no other one.
  if (!simple || at !== events.length - 1) return undefined;
  return typeof value === 'object' && !Array.isArray(value) ? value : undefined;
}

function loadMap(text: string, more: { readonly json?: boolean } = {}): FrontmatterData {
  const value: unknown = load(text, { ...OPTIONS, ...more });
  if (!isMap(value)) throw new TypeError('not a mapping');
  return plain(value);
}

interface RawEntry {
  readonly key: string;
  readonly line: number;
  readonly lines: string[];
}

function readEntries(head: string, headLine: number, note: Note): FrontmatterData {
  const data = empty();
  for (const { key, line, lines } of rawEntries(head, headLine)) {
    if (key === '') {
      note('dropped-line', line, lines[0]);
      continue;
    }
    const raw = lines.join('\n').replaceAll(/^([ ]*)\t+/gm, (tabs) => tabs.replaceAll('\t', '  '));
    const value = readAlone(key, raw);
    if (value !== undefined) {
      data[key] = value;
      continue;
    }
    note('quoted-value', line, key);
    const flat = lines
      .map((text) => text.trim())
      .filter((text) => text !== '')
      .join(' ');
    data[key] = flat.replace(/^(["'])([\s\S]*)\1$/, '$2').replace(/^[|>][+-]?\s*/, '');
  }
  return data;
}

function readAlone(key: string, raw: string): FrontmatterValue | undefined {
  try {
    const data = parse(`${key}: ${raw}`);
    return Object.keys(data).length === 1 ? data[key] : undefined;
  } catch {
    return undefined;
  }
}

/** Top-level entries: `key: first line`, and the indented lines below it. A line that is neither has no key. */
function rawEntries(head: string, headLine: number): readonly RawEntry[] {
  const entries: RawEntry[] = [];
  for (const [i, line] of head.split('\n').entries()) {
    const match = /^([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|)$/.exec(line);
    if (match !== null)
      entries.push({ key: match[1]!, line: headLine + i, lines: [match[2] ?? ''] });
    else if (entries.length > 0 && /^(?:\s|-\s|$|[}\]])/.test(line))
      entries.at(-1)!.lines.push(line);
    else if (line.trim() !== '' && !line.startsWith('#'))
      entries.push({ key: '', line: headLine + i, lines: [line] });
  }
  return entries;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const empty = (): FrontmatterData => Object.create(null) as FrontmatterData;

/** A copy without prototypes: `__proto__` is a key like any other. */
function plain(map: Readonly<Record<string, unknown>>): FrontmatterData {
  const data = empty();
  for (const key of Object.keys(map)) data[key] = plainValue(map[key]);
  return data;
}

function plainValue(value: unknown): FrontmatterValue {
  if (Array.isArray(value)) return value.map(plainValue);
  if (isMap(value)) return plain(value);
  return typeof value === 'string' ? value : '';
}

/** Line within the block, from 0. */
function lineOf(error: unknown): number {
  const mark = (error as { readonly mark?: { readonly line?: unknown } }).mark;
  return typeof mark?.line === 'number' ? mark.line : 0;
}

/** js-yaml has no code for it: its reason is the only place where this can be seen. */
function isDuplicate(error: unknown): boolean {
  const { reason } = error as { readonly reason?: unknown };
  return typeof reason === 'string' && reason.includes('duplicated mapping key');
}
