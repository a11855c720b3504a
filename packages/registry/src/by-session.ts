import type { RegistrationScope } from '@patchbay/protocols';

/** Items of many sessions, so that what concerns one does not look at those of all. */
export class BySession<T> {
  /** Those of no session under `undefined`. */
  readonly #sets = new Map<string | undefined, Set<T>>();

  add(session: string | undefined, item: T): void {
    const set = this.#sets.get(session) ?? new Set();
    this.#sets.set(session, set.add(item));
  }

  delete(session: string | undefined, item: T): boolean {
    const set = this.#sets.get(session);
    if (set?.delete(item) !== true) return false;
    if (set.size === 0) this.#sets.delete(session);
    return true;
  }

  has(session: string | undefined): boolean {
    return this.#sets.has(session);
  }

  of(session: string | undefined): Iterable<T> {
    return this.#sets.get(session) ?? [];
  }

  /** Those that may lie at or below a scope: of its session, or of all. */
  *below({ session }: RegistrationScope): Iterable<T> {
    if (session !== undefined) yield* this.of(session);
    else for (const set of this.#sets.values()) yield* set;
  }
}
