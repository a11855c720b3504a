import {
  describeScope,
  scopeCovers,
  type Capability,
  type RegistrationScope,
  type Scope,
} from '@patchbay/protocols';

import { by } from './by.ts';
import { ByScope } from './by-scope.ts';
import type { Registration } from './registration.ts';

/** Where a visible id comes from, and what it hides. */
export interface Visible {
  readonly registration: Registration;
  /** Registrations of the same id, higher up. */
  readonly shadowed: readonly Registration[];
}

/** Who is registered where, and who sees what. Looking costs the registrations of one's own scopes, not of all. */
export class ScopeStore {
  readonly #registered = new ByScope<Registration>();
  /** Each by its id and its very scope. */
  readonly #at = new Map<string, Registration>();
  /** How often each id, and each capability, is registered. */
  readonly #times = new Map<string | Capability, number>();
  /** Those that decide for themselves who sees them. */
  readonly #hiding = new Set<Registration>();
  /** Grows with every registration that comes or goes. */
  generation = 0;

  add(registration: Registration): void {
    const { scope, id } = registration;
    this.#registered.add(scope, registration);
    this.#at.set(keyOf(id, scope), registration);
    if (registration.capability.visible !== undefined) this.#hiding.add(registration);
    this.#count(registration, 1);
  }

  delete(registration: Registration): void {
    const { scope, id } = registration;
    if (!this.#registered.delete(scope, registration)) return;
    this.#at.delete(keyOf(id, scope));
    this.#hiding.delete(registration);
    this.#count(registration, -1);
  }

  /** What is registered under an id at this very scope. */
  find(id: string, scope: RegistrationScope): Registration | undefined {
    return this.#at.get(keyOf(id, scope));
  }

  /** Whether a capability is registered anywhere. */
  has(capability: Capability): boolean {
    return this.#times.has(capability);
  }

  get mayHide(): boolean {
    return this.#hiding.size > 0;
  }

  /** Whether a registration that came, or went, changes nothing of who sees the others. */
  standsAlone({ id, scope }: Registration): boolean {
    const itself = this.find(id, scope) === undefined ? 0 : 1;
    return !this.mayHide && (this.#times.get(id) ?? 0) === itself;
  }

  /** Whether anything is registered for exactly this turn. */
  hasTurn(session: string | undefined, turn: string): boolean {
    if (session === undefined) return false;
    for (const r of this.#registered.within({ session })) if (r.scope.turn === turn) return true;
    return false;
  }

  /** Equal for scopes that see the same registrations: all sessions that have none of their own are one. */
  sameAs(scope: Scope): string {
    const { session, ...rest } = scope;
    return describeScope(this.#registered.has(session) ? scope : rest);
  }

  /** What `scope` sees, sorted by id. Only ever looks upwards: nothing registered deeper is among it. */
  visible(scope: Scope): readonly Visible[] {
    const covering = [...this.#registered.above(scope)].filter((r) => scopeCovers(r.scope, scope));
    // The deepest first, and what it is a part of before the part: parts of what is not seen are not seen either.
    const byId = new Map<string, { registration: Registration; shadowed: Registration[] }>();
    for (const registration of covering.toSorted(
      by(
        ({ depth }) => -depth,
        ({ serial }) => serial,
      ),
    )) {
      const { id, parent } = registration;
      const same = byId.get(id);
      if (same !== undefined) same.shadowed.push(registration);
      else if (parent === undefined || byId.get(parent.id)?.registration === parent)
        byId.set(id, { registration, shadowed: [] });
    }
    return [...byId.values()].toSorted(by(({ registration }) => registration.id));
  }

  /** Everything at or below `scope`: the whole program, a session, an agent with its sub-agents, a turn. */
  below(scope: RegistrationScope): readonly Registration[] {
    return [...this.#registered.within(scope)].filter((r) => isBelow(r.scope, scope));
  }

  /** Whatever somebody at or below `scope` can have seen. */
  seenFrom(scope: RegistrationScope): readonly Registration[] {
    return scope.session === undefined ? this.all() : [...this.#registered.around(scope)];
  }

  all(): readonly Registration[] {
    return this.below({});
  }

  #count({ capability, id }: Registration, step: 1 | -1): void {
    for (const what of [id, capability]) {
      const times = (this.#times.get(what) ?? 0) + step;
      if (times === 0) this.#times.delete(what);
      else this.#times.set(what, times);
    }
    this.generation++;
  }
}

const keyOf = (id: string, scope: RegistrationScope): string => `${describeScope(scope)}\0${id}`;

/** Whether `inner` lies at or below `outer`, so that the end of `outer` is its end too. */
export function isBelow(inner: RegistrationScope, outer: RegistrationScope): boolean {
  if (outer.everySession === true && inner.everySession !== true) return false;
  return scopeCovers(outer, inner);
}
