import {
  isChangeObservable,
  listen,
  Pending,
  scopeCovers,
  type ChangeEvent,
  type RegistrationScope,
  type Scope,
  type TraceListener,
} from '@patchbay/protocols';

import { BySession } from './by-session.ts';
import type { Registration } from './registration.ts';
import { isBelow } from './scope-store.ts';
import { untilAnyOf, type Until } from './waiting.ts';

interface Listener {
  readonly scope: Scope;
  readonly pending: Pending;
  /** What ends the stream of each capability that it hears. */
  readonly heard: Map<Registration, AbortController>;
}

/**
 * Merges the changes of everything that a scope sees, of what joins later too. A source is only listened to while
 * somebody listens here; one that fails does not end the merged stream. (RFC-0051 "merge_change_streams")
 */
export class ChangeHub {
  readonly #listeners = new BySession<Listener>();
  readonly #visible: (scope: Scope) => readonly Registration[];
  readonly #failed: (registration: Registration, error: unknown) => void;
  readonly #trace: TraceListener | undefined;
  /** What was traced: every listener hears the same event of a source. */
  readonly #traced = new WeakSet<ChangeEvent>();

  constructor(
    visible: (scope: Scope) => readonly Registration[],
    failed: (registration: Registration, error: unknown) => void,
    trace?: TraceListener,
  ) {
    this.#visible = visible;
    this.#failed = failed;
    this.#trace = trace;
  }

  listen(scope: Scope, ...until: readonly Until[]): AsyncIterable<ChangeEvent> {
    let listener: Listener | undefined;
    const own = untilAnyOf(...until);
    return listen(
      own.signal,
      (pending) => {
        listener = { scope, pending, heard: new Map() };
        this.#listeners.add(scope.session, listener);
        this.#follow(listener);
      },
      () => {
        own.release();
        if (listener === undefined) return;
        this.#listeners.delete(scope.session, listener);
        for (const end of listener.heard.values()) end.abort();
        listener.heard.clear();
      },
    );
  }

  /** What is visible may have changed: hear who is new, stop hearing who is gone. */
  changed(at: RegistrationScope, event: ChangeEvent): void {
    this.#trace?.({ type: 'change', ...event });
    for (const listener of this.#listeners.below(at)) {
      if (!scopeCovers(at, listener.scope)) continue;
      this.#follow(listener);
      listener.pending.push(event);
    }
  }

  /** Something that the registry itself knows of a capability. */
  tell(registration: Registration, event: ChangeEvent): void {
    this.#trace?.({ type: 'change', ...event });
    for (const { scope, pending } of this.#listeners.below(registration.scope))
      if (scopeCovers(registration.scope, scope)) pending.push(event);
  }

  /** Ends the streams at and below a scope, after what they still have to tell. */
  end(at: RegistrationScope): void {
    for (const { scope, pending } of this.#listeners.below(at))
      if (isBelow(scope, at)) pending.end();
  }

  #follow(listener: Listener): void {
    const now = new Set(this.#visible(listener.scope));
    for (const [registration, end] of listener.heard) {
      if (now.has(registration)) continue;
      end.abort();
      listener.heard.delete(registration);
    }
    for (const registration of now) {
      if (listener.heard.has(registration) || !isChangeObservable(registration.capability))
        continue;
      const end = new AbortController();
      listener.heard.set(registration, end);
      void this.#hear(listener, registration, end.signal);
    }
  }

  async #hear(listener: Listener, registration: Registration, signal: AbortSignal): Promise<void> {
    const { capability, id } = registration;
    if (!isChangeObservable(capability)) return;
    try {
      for await (const event of capability.changes(signal)) {
        if (signal.aborted) return;
        const own = event.capability === id ? event : { ...event, capability: id };
        if (this.#trace !== undefined && !this.#traced.has(event)) {
          this.#traced.add(event);
          this.#trace({ type: 'change', ...own });
        }
        listener.pending.push(own);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#failed(registration, error);
      // Whatever it would have told by now: look again.
      listener.pending.push({ capability: id, kind: 'status_changed' });
    }
  }
}
