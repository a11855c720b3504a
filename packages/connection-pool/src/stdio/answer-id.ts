/**
 * The id of the answer that a line is, by its two ends alone: the members before a `result` or after it. Quotes within a
 * string are escaped, so what matches is no text of a result; one brace at the end is the message's own.
 */
export function answerId(head: string, tail: string): string | number | undefined {
  const id = String.raw`"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")`;
  const version = String.raw`"jsonrpc"\s*:\s*"2\.0"`;
  const first = new RegExp(
    String.raw`^\s*\{\s*(?:${version}\s*,\s*)?${id}\s*,\s*"(?:result|error|jsonrpc)"`,
  );
  const last = new RegExp(
    String.raw`[}\]"\d]\s*,\s*(?:${version}\s*,\s*)?${id}\s*(?:,\s*${version}\s*)?\}\s*$`,
  );
  const found = first.exec(head)?.[1] ?? last.exec(tail)?.[1];
  return found === undefined ? undefined : (JSON.parse(found) as string | number);
}
