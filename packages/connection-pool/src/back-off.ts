/** How a lost connection is tried again. */
export interface BackOff {
  /** How many attempts one use makes to rebuild a lost connection. Default 3. */
  readonly attempts: number;
  /** Milliseconds before the second attempt; doubled for each further one. Default 1,000. */
  readonly firstMs: number;
  /** Longest wait. Default 60,000. */
  readonly maxMs: number;
}

/** Time, as recovery reads it and waits by it. */
export interface Clock {
  /** In milliseconds since 1970. */
  now(): number;
  /** Waits so many milliseconds, or rejects with the reason of `signal`. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** The wait after `failures` failures in a row: exponential, between half and the whole of it, so that many do not come at once. */
export function waitMs(
  failures: number,
  { firstMs, maxMs }: BackOff,
  random: () => number,
): number {
  const whole = Math.min(maxMs, firstMs * 2 ** Math.max(0, failures - 1));
  return Math.round(whole / 2 + (whole / 2) * random());
}
