/**
 * What ends something that is under way: an AbortSignal that is made when somebody asks for it. A call over a pipe needs
 * none, and making one shows in a profile of it.
 */
export interface Stop {
  readonly isOver: boolean;
  readonly reason: unknown;
  readonly signal: AbortSignal;
  /** Not called where it is over already. Returns what lets go of it. */
  onEnd(listener: () => void): () => void;
}

/** One that is ended by whoever made it. */
export class Stopper implements Stop {
  readonly #listeners = new Set<() => void>();
  #over: { readonly reason: unknown } | undefined;
  #controller: AbortController | undefined;

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  get reason(): unknown {
    return this.#over?.reason;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#over !== undefined) this.#controller.abort(this.#over.reason);
    }
    return this.#controller.signal;
  }

  onEnd(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
    this.#controller?.abort(reason);
  }
}

/** A signal that is there anyway. */
export function stopBy(signal: AbortSignal): Stop {
  return {
    get isOver() {
      return signal.aborted;
    },
    get reason(): unknown {
      return signal.reason;
    },
    signal,
    onEnd: (listener) => {
      signal.addEventListener('abort', listener, { once: true });
      return () => signal.removeEventListener('abort', listener);
    },
  };
}
