/** A median, and how far its middle half reaches: (third quartile - first quartile) / median. */
export interface Summary {
  readonly median: number;
  readonly spread: number;
  readonly runs: number;
}

/** The value below which a share of the sorted numbers lies, interpolated. `numbers` must not be empty. */
function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}

export function summarize(numbers: readonly number[]): Summary {
  const median = quantile(numbers, 0.5);
  const middle = quantile(numbers, 0.75) - quantile(numbers, 0.25);
  return { median, spread: median === 0 ? 0 : middle / median, runs: numbers.length };
}
