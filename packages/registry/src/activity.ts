/** What is going on in a session: open turns, compiles, calls. So that nobody closes it in the middle of something. */
export class Activity {
  #running = 0;
  #lastUsedAt = Date.now();

  get running(): number {
    return this.#running;
  }

  get lastUsedAt(): number {
    return this.#lastUsedAt;
  }

  begin(): void {
    this.#running++;
    this.#lastUsedAt = Date.now();
  }

  end(): void {
    this.#running--;
    this.#lastUsedAt = Date.now();
  }

  async during<T>(run: () => Promise<T>): Promise<T> {
    this.begin();
    try {
      return await run();
    } finally {
      this.end();
    }
  }
}
