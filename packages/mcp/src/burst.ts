/** Milliseconds. Some servers announce every single change of a start with dozens of tools. */
const WINDOW_MS = 100;

/** Tells the first of many at once, and once more at the end that others followed. */
export class Burst {
  readonly #open = new Map<
    string,
    { again: boolean; readonly timer: ReturnType<typeof setTimeout> }
  >();

  hit(key: string, tell: () => void): void {
    const open = this.#open.get(key);
    if (open !== undefined) {
      open.again = true;
      return;
    }
    const timer = setTimeout(() => {
      const again = this.#open.get(key)?.again === true;
      this.#open.delete(key);
      if (again) this.hit(key, tell);
    }, WINDOW_MS);
    // What nobody waits for need not keep the program alive.
    (timer as { unref?: () => void }).unref?.();
    this.#open.set(key, { again: false, timer });
    tell();
  }

  stop(): void {
    for (const { timer } of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }
}
