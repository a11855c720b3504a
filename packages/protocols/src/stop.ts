/**
 * What ends something that is under way: as an AbortSignal does, but one is only made where `signal` is read. Making it and
 * listening to it costs a call more than anything else that is done for it, and most calls need none.
 */
export interface Stop {
  readonly isOver: boolean;
  /** What it ended with. */
  readonly reason: unknown;
  /** Aborted with `reason`, now or when it ends. The same one each time. */
  readonly signal: AbortSignal;
  /** Called once: at once, where it is over. Returns what lets go of it. */
  onEnd(listener: (reason: unknown) => void): () => void;
}

/** One that is ended by whoever made it. */
export class Stopper implements Stop {
  #listeners: Set<(reason: unknown) => void> | undefined;
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

  onEnd(listener: (reason: unknown) => void): () => void {
    if (this.#over !== undefined) {
      listener(this.#over.reason);
      return () => undefined;
    }
    const listeners = (this.#listeners ??= new Set());
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** The first reason counts. */
  end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    for (const listener of this.#listeners ?? []) listener(reason);
    this.#listeners = undefined;
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
      const onAbort = () => listener(signal.reason);
      if (signal.aborted) {
        onAbort();
        return () => undefined;
      }
      signal.addEventListener('abort', onAbort, { once: true });
      return () => signal.removeEventListener('abort', onAbort);
    },
  };
}
