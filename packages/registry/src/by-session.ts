import type { RegistrationScope } from '@patchbay/protocols';

/**
 * What belongs to a scope each, by session: whatever is about one session costs what belongs to it, however many others
 * there are.
 */
export class BySession<T> {
  readonly #sets = new Map<string | undefined, Set<T>>();

  add({ session }: RegistrationScope, item: T): void {
    const set = this.#sets.get(session);
    if (set === undefined) this.#sets.set(session, new Set([item]));
    else set.add(item);
  }

  /** Whether it was there. */
  delete({ session }: RegistrationScope, item: T): boolean {
    const set = this.#sets.get(session);
    if (set?.delete(item) !== true) return false;
    if (set.size === 0) this.#sets.delete(session);
    return true;
  }

  /** Those of exactly this session; of no session, for `undefined`. */
  of(session: string | undefined): Iterable<T> {
    return this.#sets.get(session) ?? [];
  }

  /** Whether anything is of this session. */
  has(session: string | undefined): boolean {
    return this.#sets.has(session);
  }

  /** All that can be at or below a scope: of its session, or everything, for a scope that is of none. */
  *within({ session }: RegistrationScope): Iterable<T> {
    if (session !== undefined) yield* this.of(session);
    else for (const set of this.#sets.values()) yield* set;
  }

  /** All that a scope of this session can see: everybody's, and its own. */
  *above({ session }: RegistrationScope): Iterable<T> {
    yield* this.of(undefined);
    if (session !== undefined) yield* this.of(session);
  }

  clear(): void {
    this.#sets.clear();
  }
}
