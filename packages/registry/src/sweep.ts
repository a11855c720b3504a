/** Fewer entries than this are not looked through. */
const FEW = 100;

/**
 * When to look for entries whose object is gone, of something that holds its objects weakly: each time there are twice as
 * many as the last look left, so that an entry costs the same however many there are. A `FinalizationRegistry` would tell at
 * once; but what is registered with one survives every collection of young objects, with all that it leads to.
 */
export class Sweep {
  #next = FEW;

  isDue(entries: number): boolean {
    return entries >= this.#next;
  }

  /** So many are left. */
  done(entries: number): void {
    this.#next = Math.max(FEW, 2 * entries);
  }
}
