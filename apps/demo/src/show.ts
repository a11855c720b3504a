/** One thing that must hold, and whether it did. */
export interface Check {
  readonly what: string;
  readonly holds: boolean;
  /** What was seen. */
  readonly seen: string;
}

export function check(what: string, holds: boolean | undefined, seen = ''): Check {
  return { what, holds: holds === true, seen };
}

/** Colour only on a terminal, and never with NO_COLOR. */
const colour = (code: number, text: string): string =>
  process.stdout.isTTY && process.env['NO_COLOR'] === undefined
    ? `\u001B[${code}m${text}\u001B[0m`
    : text;

export function title(text: string): void {
  console.log(`\n${colour(1, text)}`);
}

export function showChecks(checks: readonly Check[]): readonly Check[] {
  for (const { what, holds, seen } of checks) {
    if (holds) console.log(`  ${colour(32, 'ok')}      ${what}`);
    else console.log(`  ${colour(31, 'NOT OK')}  ${what}\n          saw: ${shorten(seen, 600)}`);
  }
  return checks;
}

/** Columns as wide as they have to be. */
export function showTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = header.map((name, i) =>
    Math.max(name.length, ...rows.map((row) => (row[i] ?? '').length)),
  );
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd();
  console.log(colour(2, line(header)));
  for (const row of rows) console.log(line(row));
}

export function shorten(text: string, length = 100): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}
