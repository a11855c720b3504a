import {
  RESERVED_TOOL_NAMES,
  sha256Hex,
  type Json,
  type Problem,
  type SessionState,
  type ToolDefinition,
} from '@patchbay/protocols';

import type { OfferedTool } from './snapshot.ts';

/** A digest of each field of a definition. */
type Pin = Readonly<Record<string, string>>;

const KEY = 'tools.pinned';
const DIGITS = 16;

/**
 * What tools were when a session saw them first, so that none becomes another one unnoticed: every field counts, the order
 * of keys does not. Plain JSON in the session's state; a record that cannot be read approves nothing.
 */
export class ToolPins {
  readonly #pins = new WeakMap<ToolDefinition, Pin>();
  /** By what is stored: whether it is a record. */
  readonly #records = new WeakMap<object, boolean>();

  /** Remembers those that are new; gives a problem for each that is not what it was. */
  look(offered: Iterable<OfferedTool>, state: SessionState): readonly Problem[] {
    const tools = [...offered].filter(({ tool }) => isPinned(tool.definition));
    const known = this.#recordIn(state);
    const fresh = tools.filter(
      ({ tool: { definition } }) => known?.[definition.name] === undefined,
    );
    if (fresh.length > 0) {
      // Of a record that cannot be read nothing is taken for granted: everything has to be approved.
      const pins = fresh.map(({ tool: { definition } }): [string, Pin] => [
        definition.name,
        known === undefined ? {} : this.#pinOf(definition),
      ]);
      state.set(KEY, { ...known, ...Object.fromEntries(pins) });
    }
    return tools.flatMap((item) => {
      const changed = this.changes(item, state);
      if (changed.length === 0) return [];
      const { id, definition } = item.tool;
      return [
        {
          source: item.registration.id,
          code: 'tool-changed',
          severity: 'warning' as const,
          message: `The tool "${id.name}" of "${item.registration.id}" is not what it was when it was seen first (${changed.join(', ')}): calls of ${definition.name} are asked for until somebody approves one.`,
        },
      ];
    });
  }

  /** Which fields are not what they were; empty if nothing is. */
  changes({ tool: { definition } }: OfferedTool, state: SessionState): readonly string[] {
    const known = isPinned(definition) ? (this.#recordIn(state) ?? {})[definition.name] : undefined;
    if (known === undefined) return [];
    const now = this.#pinOf(definition);
    const fields = new Set([...Object.keys(known), ...Object.keys(now)]);
    return [...fields].filter((field) => known[field] !== now[field]).toSorted();
  }

  /** Somebody approved it as it is now. */
  approve({ tool: { definition } }: OfferedTool, state: SessionState): void {
    state.set(KEY, { ...this.#recordIn(state), [definition.name]: this.#pinOf(definition) });
  }

  /** `undefined`: what was restored is no record. */
  #recordIn(state: SessionState): Readonly<Record<string, Pin>> | undefined {
    const stored: Json | undefined = state.get(KEY);
    if (stored === undefined) return {};
    if (!isMap(stored)) return undefined;
    let isRecord = this.#records.get(stored);
    if (isRecord === undefined)
      this.#records.set(stored, (isRecord = Object.values(stored).every(isPin)));
    return isRecord ? (stored as Readonly<Record<string, Pin>>) : undefined;
  }

  #pinOf(definition: ToolDefinition): Pin {
    const before = this.#pins.get(definition);
    if (before !== undefined) return before;
    const fields = Object.entries(definition)
      .filter(([field, value]) => field !== 'name' && value !== undefined)
      .map(([field, value]) => [field, sha256Hex(canonical(value)).slice(0, DIGITS)]);
    const pin = Object.fromEntries(fields) as Pin;
    this.#pins.set(definition, pin);
    return pin;
  }
}

/** Our own tools list what there is at the moment. */
const isPinned = ({ name }: ToolDefinition): boolean => !RESERVED_TOOL_NAMES.includes(name);

const isPin = (value: unknown): boolean =>
  isMap(value) && Object.values(value).every((digest) => typeof digest === 'string');

const isMap = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The same text for the same value, whatever the order of its keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    isMap(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
