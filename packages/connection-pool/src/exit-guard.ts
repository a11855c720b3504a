/** What must not outlive our own process. */
export interface Killable {
  killNow(): void;
}

/** Kills what is left when our own process ends. It listens only while there is something to kill. */
export class ExitGuard {
  readonly #left = new Set<Killable>();
  readonly #kill = (): void => {
    for (const one of this.#left) one.killNow();
  };

  add(one: Killable): void {
    if (this.#left.size === 0) process.on('exit', this.#kill);
    this.#left.add(one);
  }

  delete(one: Killable): void {
    if (this.#left.delete(one) && this.#left.size === 0) process.off('exit', this.#kill);
  }
}
