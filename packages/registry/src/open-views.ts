import type { RegistrationScope } from '@patchbay/protocols';

import { BySession } from './by-session.ts';
import { isBelow } from './scope-store.ts';
import type { View } from './view.ts';

/** A view, held weakly, and where to find it when it is gone. */
interface Held {
  readonly view: WeakRef<View>;
  readonly session?: string;
}

/** Views that are in use, to be closed with their scope. Held weakly: a view made per request need not be closed. */
export class OpenViews {
  readonly #open = new BySession<Held>();
  readonly #heldAs = new WeakMap<View, Held>();
  readonly #collected = new FinalizationRegistry<Held>((held) => this.#open.delete(held, held));

  add(view: View): void {
    const { session } = view.scope;
    const held = { view: new WeakRef(view), ...(session === undefined ? {} : { session }) };
    this.#open.add(held, held);
    this.#heldAs.set(view, held);
    this.#collected.register(view, held, view);
  }

  delete(view: View): void {
    this.#collected.unregister(view);
    const held = this.#heldAs.get(view);
    if (held !== undefined) this.#open.delete(held, held);
  }

  below(scope: RegistrationScope): readonly View[] {
    return [...this.#open.within(scope)]
      .flatMap(({ view }) => view.deref() ?? [])
      .filter((view) => isBelow(view.scope, scope));
  }
}
