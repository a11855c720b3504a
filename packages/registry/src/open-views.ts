import type { RegistrationScope } from '@patchbay/protocols';

import { isBelow } from './scope-store.ts';
import type { View } from './view.ts';

/** A view that may have been collected, and where it is kept. */
interface Kept {
  readonly ref: WeakRef<View>;
  readonly session: string | undefined;
}

/**
 * Views that are in use, to be closed with their scope. Held weakly: a view made per request need not be closed. By
 * session, so that the end of one does not look at the views of all.
 */
export class OpenViews {
  readonly #bySession = new Map<string | undefined, Set<Kept>>();
  readonly #kept = new WeakMap<View, Kept>();
  readonly #collected = new FinalizationRegistry<Kept>((kept) => this.#remove(kept));

  add(view: View): void {
    const { session } = view.scope;
    const kept = { ref: new WeakRef(view), session };
    const views = this.#bySession.get(session) ?? new Set();
    this.#bySession.set(session, views.add(kept));
    this.#kept.set(view, kept);
    this.#collected.register(view, kept, view);
  }

  delete(view: View): void {
    this.#collected.unregister(view);
    const kept = this.#kept.get(view);
    if (kept !== undefined) this.#remove(kept);
  }

  below(scope: RegistrationScope): readonly View[] {
    const sets =
      scope.session === undefined
        ? this.#bySession.values()
        : [this.#bySession.get(scope.session) ?? []];
    return [...sets]
      .flatMap((views) => [...views].flatMap(({ ref }) => ref.deref() ?? []))
      .filter((view) => isBelow(view.scope, scope));
  }

  #remove(kept: Kept): void {
    const views = this.#bySession.get(kept.session);
    if (views?.delete(kept) === true && views.size === 0) this.#bySession.delete(kept.session);
  }
}
