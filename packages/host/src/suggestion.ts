import { closest, distance } from 'fastest-levenshtein';

/** `; did you mean "command"?`, or nothing if no known name is near. */
export function suggestion(typed: string, known: readonly string[]): string {
  const swapped = known.find((name) => letters(name) === letters(typed));
  const nearest = swapped ?? closest(typed, known);
  const limit = Math.max(1, Math.floor(typed.length / 3));
  const near = swapped !== undefined || distance(typed, nearest) <= limit;
  return near ? `; did you mean \`${nearest}\`?` : '';
}

const letters = (name: string): string => Array.from(name).toSorted().join('');
