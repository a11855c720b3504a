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

import { ByScope } from './by-scope.ts';
import type { Registration } from './registration.ts';
import { isBelow } from './scope-store.ts';
import { untilAnyOf, type Until } from './waiting.ts';

interface Listener {
  readonly scope: Scope;
  readonly pending: Pending;
  /** What ends the stream of each capability that it hears. */
  readonly heard: Map<Registration, AbortController>;
}

/** What the hub needs of the registry. */
export interface ChangeHubHost {
  visible(scope: Scope): readonly Registration[];
  /** Whether a scope sees it. */
  sees(scope: Scope, registration: Registration): boolean;
  /** Whether a registration that comes or goes changes nothing of who sees the others. */
  standsAlone(registration: Registration): boolean;
  failed(registration: Registration, error: unknown): void;
  readonly trace: TraceListener | undefined;
}

/**
 * Merges the changes of everything that a scope sees, of what joins later too. A source is only listened to while
 * somebody listens here; one that fails does not end the merged stream. (RFC-0051 "merge_change_streams")
 */
export class ChangeHub {
  readonly #listeners = new ByScope<Listener>();
  readonly #host: ChangeHubHost;
  /** What was traced: every listener hears the same event of a source. */
  readonly #traced = new WeakSet<ChangeEvent>();

  constructor(host: ChangeHubHost) {
    this.#host = host;
  }

  listen(scope: Scope, ...until: readonly Until[]): AsyncIterable<ChangeEvent> {
    let listener: Listener | undefined;
    const own = untilAnyOf(...until);
    return listen(
      own.stop.signal,
      (pending) => {
        listener = { scope, pending, heard: new Map() };
        this.#listeners.add(scope, listener);
        this.#follow(listener);
      },
      () => {
        own.release();
        if (listener === undefined) return;
        this.#listeners.delete(scope, listener);
        for (const end of listener.heard.values()) end.abort();
        listener.heard.clear();
      },
    );
  }

  /** Something came or went: hear who is new, stop hearing who is gone. */
  changed(registration: Registration, kind: 'registered' | 'unregistered'): void {
    const { scope: at, id } = registration;
    const event: ChangeEvent = { capability: id, kind };
    this.#host.trace?.({ type: 'change', ...event });
    const alone = this.#host.standsAlone(registration);
    for (const listener of this.#listeners.within(at)) {
      if (!scopeCovers(at, listener.scope)) continue;
      if (!alone) this.#follow(listener);
      else if (kind === 'unregistered') this.#leave(listener, registration);
      else if (this.#host.sees(listener.scope, registration)) this.#join(listener, registration);
      listener.pending.push(event);
    }
  }

  /** Something that the registry itself knows of a capability. */
  tell({ scope: at }: Registration, event: ChangeEvent): void {
    this.#host.trace?.({ type: 'change', ...event });
    for (const { scope, pending } of this.#listeners.within(at))
      if (scopeCovers(at, scope)) pending.push(event);
  }

  /** Ends the streams at and below a scope, after what they still have to tell. */
  end(at: RegistrationScope): void {
    for (const { scope, pending } of this.#listeners.within(at))
      if (isBelow(scope, at)) pending.end();
  }

  #follow(listener: Listener): void {
    const now = new Set(this.#host.visible(listener.scope));
    for (const registration of listener.heard.keys())
      if (!now.has(registration)) this.#leave(listener, registration);
    for (const registration of now) this.#join(listener, registration);
  }

  #join(listener: Listener, registration: Registration): void {
    if (listener.heard.has(registration) || !isChangeObservable(registration.capability)) return;
    const end = new AbortController();
    listener.heard.set(registration, end);
    void this.#hear(listener, registration, end.signal);
  }

  #leave(listener: Listener, registration: Registration): void {
    listener.heard.get(registration)?.abort();
    listener.heard.delete(registration);
  }

  async #hear(listener: Listener, registration: Registration, signal: AbortSignal): Promise<void> {
    const { capability, id } = registration;
    if (!isChangeObservable(capability)) return;
    try {
      for await (const event of capability.changes(signal)) {
        if (signal.aborted) return;
        const own = event.capability === id ? event : { ...event, capability: id };
        if (this.#host.trace !== undefined && !this.#traced.has(event)) {
          this.#traced.add(event);
          this.#host.trace({ type: 'change', ...own });
        }
        listener.pending.push(own);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#host.failed(registration, error);
      // Whatever it would have told by now: look again.
      listener.pending.push({ capability: id, kind: 'status_changed' });
    }
  }
}
