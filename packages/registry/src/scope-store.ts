import {
  describeScope,
  scopeCovers,
  type RegistrationScope,
  type Scope,
} from '@patchbay/protocols';

import { BySession } from './by-session.ts';
import { by } from './by.ts';
import type { Registration } from './registration.ts';

/** Where a visible id comes from, and what it hides. */
export interface Visible {
  readonly registration: Registration;
  /** Registrations of the same id, higher up. */
  readonly shadowed: readonly Registration[];
}

/** Who is registered where, and who sees what. Looking costs the registrations of one's own scopes, not of all. */
export class ScopeStore {
  readonly #registrations = new BySession<Registration>();
  /** Grows with every registration that comes or goes. */
  generation = 0;

  add(registration: Registration): void {
    this.#registrations.add(registration.scope.session, registration);
    this.generation++;
  }

  delete(registration: Registration): void {
    if (this.#registrations.delete(registration.scope.session, registration)) this.generation++;
  }

  find(id: string, scope: RegistrationScope): Registration | undefined {
    for (const r of this.#registrations.of(scope.session))
      if (r.id === id && sameScope(r.scope, scope)) return r;
    return undefined;
  }

  /** Whether anything is registered for exactly this turn. */
  hasTurn(session: string | undefined, turn: string): boolean {
    if (session === undefined) return false;
    for (const r of this.#registrations.of(session)) if (r.scope.turn === turn) return true;
    return false;
  }

  /** Equal for scopes that see the same registrations: all sessions that have none of their own are one. */
  sameAs(scope: Scope): string {
    const { session, ...rest } = scope;
    return describeScope(this.#registrations.has(session) ? scope : rest);
  }

  /** What `scope` sees, sorted by id. Only ever looks upwards: nothing registered deeper is among it. */
  visible(scope: Scope): readonly Visible[] {
    const covering = [
      ...this.#registrations.of(undefined),
      ...(scope.session === undefined ? [] : this.#registrations.of(scope.session)),
    ].filter((r) => scopeCovers(r.scope, scope));
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
    return [...this.#registrations.below(scope)].filter((r) => isBelow(r.scope, scope));
  }

  all(): readonly Registration[] {
    return this.below({});
  }
}

/** Whether `inner` lies at or below `outer`, so that the end of `outer` is its end too. */
export function isBelow(inner: RegistrationScope, outer: RegistrationScope): boolean {
  if (outer.everySession === true && inner.everySession !== true) return false;
  return scopeCovers(outer, inner);
}

function sameScope(a: RegistrationScope, b: RegistrationScope): boolean {
  return (
    a.session === b.session &&
    a.agent === b.agent &&
    a.turn === b.turn &&
    (a.everySession ?? false) === (b.everySession ?? false)
  );
}
