import type { RegistrationScope, Scope } from '@patchbay/protocols';

import { ByScope } from './by-scope.ts';
import { isBelow } from './scope-store.ts';
import type { View } from './view.ts';

/** A view, held weakly, and where to find it when it is gone. */
interface Held {
  readonly view: WeakRef<View>;
  readonly scope: Scope;
}

/** Views that are in use, to be closed with their scope. Held weakly: a view made per request need not be closed. */
export class OpenViews {
  readonly #open = new ByScope<Held>();
  readonly #heldAs = new WeakMap<View, Held>();
  readonly #collected = new FinalizationRegistry<Held>((held) =>
    this.#open.delete(held.scope, held),
  );

  add(view: View): void {
    const { scope } = view;
    const held = { view: new WeakRef(view), scope };
    this.#open.add(scope, held);
    this.#heldAs.set(view, held);
    this.#collected.register(view, held, view);
  }

  delete(view: View): void {
    this.#collected.unregister(view);
    const held = this.#heldAs.get(view);
    if (held !== undefined) this.#open.delete(held.scope, held);
  }

  below(scope: RegistrationScope): readonly View[] {
    return [...this.#open.within(scope)]
      .flatMap(({ view }) => view.deref() ?? [])
      .filter((view) => isBelow(view.scope, scope));
  }
}
