import type { ChangeEvent, ChangeKind } from './change-observable.ts';

/** Makes a {@link ChangeEvent} of the source's own capability. */
export type EmitChange = (kind: ChangeKind, sourceUri?: string) => void;

/** A ready-made {@link ChangeObservable}: put `revision` and `subscribe` into your capability. Methods need no `this`. */
export interface ChangeSource {
  readonly revision: () => number;
  readonly subscribe: (signal: AbortSignal) => AsyncIterable<ChangeEvent>;
  readonly emit: EmitChange;
}

/** More changes than this of one kind wait as a single one without `sourceUri`: memory stays bounded. */
const MAX_URIS_PER_KIND = 100;

/**
 * Change events for a capability.
 *
 * `attach` connects to the real source while at least one listener is there, and returns what disconnects it. Without a
 * listener the source is not watched, so the revision cannot vouch for anything and differs at every call.
 */
export function changeSource(
  capability: string,
  attach?: (emit: EmitChange) => (() => void) | void,
): ChangeSource {
  const listeners = new Set<Pending>();
  let revision = 0;
  let detach: (() => void) | void;

  const emit: EmitChange = (kind, sourceUri) => {
    revision++;
    const event: ChangeEvent = Object.freeze({
      capability,
      kind,
      ...(sourceUri === undefined ? {} : { sourceUri }),
    });
    for (const listener of listeners) listener.push(event);
  };

  const join = (listener: Pending) => {
    listeners.add(listener);
    if (listeners.size !== 1 || attach === undefined) return;
    revision++;
    detach = attach(emit);
  };
  const leave = (listener: Pending) => {
    if (!listeners.delete(listener) || listeners.size > 0) return;
    const end = detach;
    detach = undefined;
    end?.();
  };

  return {
    emit,
    revision: () => (attach !== undefined && listeners.size === 0 ? ++revision : revision),
    subscribe: (signal) => listen(signal, join, leave),
  };
}

/** What one listener has not read yet: at most one event per kind and URI, in order of first arrival. */
export class Pending {
  readonly #events = new Map<string, ChangeEvent>();
  readonly #perKind = new Map<string, number>();
  #wake: (() => void) | undefined;
  #ended = false;

  /** Nothing comes any more: whoever reads is done after what waits. */
  get ended(): boolean {
    return this.#ended;
  }

  end(): void {
    this.#ended = true;
    this.wake();
  }

  push(event: ChangeEvent): void {
    const from = `${event.capability}\0${event.kind}`;
    const uris = this.#perKind.get(from) ?? 0;
    const whole = event.sourceUri === undefined || uris >= MAX_URIS_PER_KIND;
    const key = whole ? from : `${from}\0${event.sourceUri}`;
    if (!this.#events.has(key)) {
      if (!whole) this.#perKind.set(from, uris + 1);
      this.#events.set(
        key,
        whole && event.sourceUri !== undefined
          ? { capability: event.capability, kind: event.kind }
          : event,
      );
    }
    this.wake();
  }

  take(): readonly ChangeEvent[] {
    const events = [...this.#events.values()];
    this.#events.clear();
    this.#perKind.clear();
    return events;
  }

  /** Resolves at the next `push` or `wake`, at once if something waits. */
  async wait(): Promise<void> {
    if (this.#events.size > 0) return;
    await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

/**
 * An iterable over what is pushed into a {@link Pending} between `join` and `leave`. It joins when it is made, so that
 * nothing is lost before the first read, and leaves when the signal aborts or the loop is left.
 */
export function listen(
  signal: AbortSignal,
  join: (listener: Pending) => void,
  leave: (listener: Pending) => void,
): AsyncIterable<ChangeEvent> {
  const listener = new Pending();
  const stop = () => {
    leave(listener);
    listener.wake();
  };
  if (!signal.aborted) {
    join(listener);
    signal.addEventListener('abort', stop, { once: true });
  }
  const end = () => {
    signal.removeEventListener('abort', stop);
    stop();
  };
  return {
    async *[Symbol.asyncIterator]() {
      try {
        while (!signal.aborted) {
          const events = listener.take();
          if (events.length > 0) yield* events;
          else if (listener.ended) return;
          else await listener.wait();
        }
      } finally {
        end();
      }
    },
  };
}
