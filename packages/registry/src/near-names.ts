import { by } from './by.ts';

/** The names that were perhaps meant, nearest first, at most three. */
export function nearNames(typed: string, names: readonly string[]): readonly string[] {
  const wanted = fold(typed);
  const limit = Math.max(1, Math.floor(wanted.length / 3));
  return names
    .map((name) => {
      const known = fold(name);
      const last = known.split(':').at(-1) ?? known;
      const near = Math.min(distance(wanted, known, limit), distance(wanted, last, limit));
      return { name, away: known.startsWith(wanted) ? 0.5 : near };
    })
    .filter(({ away }) => away <= limit)
    .toSorted(
      by(
        ({ away }) => away,
        ({ name }) => name,
      ),
    )
    .slice(0, 3)
    .map(({ name }) => name);
}

const fold = (name: string): string => name.toLowerCase().replaceAll('_', '-');

/** Edits (a swap of neighbours is one) between two names, or more than `limit`. (Optimal string alignment) */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, before[j - 2]! + 1);
      next.push(best);
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
