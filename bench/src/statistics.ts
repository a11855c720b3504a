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

/** By which power of the size the cost grows: the slope of the line through the logarithms of both. */
export function exponent(sizes: readonly number[], costs: readonly number[]): number {
  const x = sizes.map(Math.log);
  const y = costs.map(Math.log);
  const middle = (numbers: readonly number[]) =>
    numbers.reduce((a, b) => a + b, 0) / numbers.length;
  const [mx, my] = [middle(x), middle(y)];
  const up = x.reduce((sum, one, i) => sum + (one - mx) * ((y[i] ?? Number.NaN) - my), 0);
  return up / x.reduce((sum, one) => sum + (one - mx) ** 2, 0);
}
