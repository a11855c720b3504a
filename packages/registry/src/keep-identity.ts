/**
 * `next` in terms of `before`: `before` itself if every element says the same, else a list in which every element that
 * says the same is the object of before. So that whatever was derived from it (a validator, a framework's tool, a whole
 * snapshot) is not made again because a source made its list anew.
 */
export function keepIdentity<T>(before: T, next: T): T {
  if (before === next || !Array.isArray(before) || !Array.isArray(next)) return next;
  const known = new Map<string, unknown>(before.map((item) => [keyOf(item), item]));
  let same = before.length === next.length;
  const merged = next.map((item: unknown, i) => {
    const merge = mergeItem(known.get(keyOf(item)), item);
    if (merge !== before[i]) same = false;
    return merge;
  });
  return same ? before : (merged as T);
}

function mergeItem(before: unknown, next: unknown): unknown {
  if (before === undefined || before === next) return next;
  if (isTool(before) && isTool(next)) {
    // The function may close over something new, so the tool is a new one; its definition is not.
    return equal(before.definition, next.definition) && before.definition !== next.definition
      ? Object.freeze({ id: before.id, definition: before.definition, call: next.call.bind(next) })
      : next;
  }
  return equal(before, next) ? before : next;
}

interface ToolLike {
  readonly id: unknown;
  readonly definition: { readonly name: string };
  call(...args: unknown[]): unknown;
}

function isTool(item: unknown): item is ToolLike {
  return typeof item === 'object' && item !== null && 'definition' in item && 'call' in item;
}

function keyOf(item: unknown): string {
  if (isTool(item)) return item.definition.name;
  const { uri, name, source, text } = (item ?? {}) as Record<string, unknown>;
  return JSON.stringify([
    uri ?? name ?? source,
    uri === undefined && name === undefined ? text : undefined,
  ]);
}

const equal = (a: unknown, b: unknown): boolean =>
  a === b || JSON.stringify(a) === JSON.stringify(b);
