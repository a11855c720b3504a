import type { RegistrationScope } from '@patchbay/protocols';

import { BySession } from './by-session.ts';
import { isBelow } from './scope-store.ts';
import type { View } from './view.ts';

/** A view that may have been collected, and where it is kept. */
interface Kept {
  readonly ref: WeakRef<View>;
  readonly session: string | undefined;
}

/** Views that are in use, to be closed with their scope. Held weakly: a view made per request need not be closed. */
export class OpenViews {
  readonly #views = new BySession<Kept>();
  readonly #kept = new WeakMap<View, Kept>();
  readonly #collected = new FinalizationRegistry<Kept>((kept) =>
    this.#views.delete(kept.session, kept),
  );

  add(view: View): void {
    const { session } = view.scope;
    const kept = { ref: new WeakRef(view), session };
    this.#views.add(session, kept);
    this.#kept.set(view, kept);
    this.#collected.register(view, kept, view);
  }

  delete(view: View): void {
    this.#collected.unregister(view);
    const kept = this.#kept.get(view);
    if (kept !== undefined) this.#views.delete(kept.session, kept);
  }

  below(scope: RegistrationScope): readonly View[] {
    return [...this.#views.below(scope)]
      .flatMap(({ ref }) => ref.deref() ?? [])
      .filter((view) => isBelow(view.scope, scope));
  }
}
