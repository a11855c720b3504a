/** The first `max` characters at most, never ending in half a surrogate pair. */
export function head(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd8_00 && last <= 0xdb_ff ? max - 1 : max);
}

/** {@link head}, with an ellipsis where something was cut. */
export function clip(text: string, max: number): string {
  return text.length <= max ? text : `${head(text, max)}…`;
}
