/**
 * Whether a conversation has a text: for `prepare({ isSaid })` of a turn. `contents` are those of its messages, in any shape of
 * any framework: every string in them is looked at, none is copied.
 */
export function saidIn(contents: readonly unknown[]): (text: string) => boolean {
  return (text) => contents.some((content) => holds(content, text, 0));
}

/** Deeper than any framework nests its parts. */
const MAX_DEPTH = 12;

function holds(value: unknown, text: string, depth: number): boolean {
  if (typeof value === 'string') return value.includes(text);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return false;
  if (ArrayBuffer.isView(value)) return false;
  const inner: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  return inner.some((one) => holds(one, text, depth + 1));
}
