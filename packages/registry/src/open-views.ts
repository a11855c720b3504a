import type { RegistrationScope } from '@patchbay/protocols';

import { isBelow } from './scope-store.ts';
import type { View } from './view.ts';

/** Views that are in use, to be closed with their scope. Held weakly: a view made per request need not be closed. */
export class OpenViews {
  readonly #views = new Set<WeakRef<View>>();
  readonly #collected = new FinalizationRegistry<WeakRef<View>>((ref) => this.#views.delete(ref));

  add(view: View): void {
    const ref = new WeakRef(view);
    this.#views.add(ref);
    this.#collected.register(view, ref, view);
  }

  delete(view: View): void {
    this.#collected.unregister(view);
    for (const ref of this.#views) if (ref.deref() === view) this.#views.delete(ref);
  }

  below(scope: RegistrationScope): readonly View[] {
    return [...this.#views]
      .flatMap((ref) => ref.deref() ?? [])
      .filter((view) => isBelow(view.scope, scope));
  }
}
