import type { RegistrationScope, Scope } from '@patchbay/protocols';

import { ByScope } from './by-scope.ts';
import { isBelow } from './scope-store.ts';
import { Sweep } from './sweep.ts';
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
  readonly #sweep = new Sweep();
  #count = 0;

  add(view: View): void {
    const { scope } = view;
    const held = { view: new WeakRef(view), scope };
    if (this.#sweep.isDue(this.#count)) {
      for (const old of this.#open.within({}))
        if (old.view.deref() === undefined) this.#remove(old);
      this.#sweep.done(this.#count);
    }
    this.#open.add(scope, held);
    this.#count++;
    this.#heldAs.set(view, held);
  }

  delete(view: View): void {
    const held = this.#heldAs.get(view);
    if (held !== undefined) this.#remove(held);
  }

  below(scope: RegistrationScope): readonly View[] {
    return [...this.#open.within(scope)]
      .flatMap(({ view }) => view.deref() ?? [])
      .filter((view) => isBelow(view.scope, scope));
  }

  #remove(held: Held): void {
    if (this.#open.delete(held.scope, held)) this.#count--;
  }
}
