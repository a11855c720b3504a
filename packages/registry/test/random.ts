/** Repeatable numbers (mulberry32): `random(seed)(6)` is one of 0 to 5. */
export function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** Of this run. `SEED=…` runs the same again. */
export const seed: number = Number(process.env['SEED'] ?? Date.now() % 1e9);
