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

/** Who is to be called, between those who came before and after. */
interface Listener {
  readonly call: (reason: unknown) => void;
  before: Listener | undefined;
  after: Listener | undefined;
  hasLetGo: boolean;
}

/** One that is ended by whoever made it. */
export class Stopper implements Stop {
  /** The last of a chain: a `Set` is made anew by engines each time that it becomes empty, which is for each call. */
  #last: Listener | undefined;
  #over: { readonly reason: unknown } | undefined;
  #makeReason: (() => unknown) | undefined;
  #controller: AbortController | undefined;

  get isOver(): boolean {
    return this.#over !== undefined || this.#makeReason !== undefined;
  }

  get reason(): unknown {
    if (this.#makeReason !== undefined) {
      this.#over = { reason: this.#makeReason() };
      this.#makeReason = undefined;
    }
    return this.#over?.reason;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.isOver) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  onEnd(listener: (reason: unknown) => void): () => void {
    if (this.isOver) {
      listener(this.reason);
      return () => undefined;
    }
    const own: Listener = { call: listener, before: this.#last, after: undefined, hasLetGo: false };
    if (own.before !== undefined) own.before.after = own;
    this.#last = own;
    return () => this.#letGo(own);
  }

  /** The first reason counts. */
  end(reason: unknown): void {
    if (this.isOver) return;
    this.#over = { reason };
    this.#tell();
  }

  /** As {@link end}, with a reason that is made when it is first asked for, once: an error costs more than many a call. */
  endBy(makeReason: () => unknown): void {
    if (this.isOver) return;
    this.#makeReason = makeReason;
    if (this.#last !== undefined || this.#controller !== undefined) this.#tell();
  }

  #tell(): void {
    const { reason } = this;
    const listeners: Listener[] = [];
    for (let one = this.#last; one !== undefined; one = one.before) listeners.push(one);
    this.#last = undefined;
    // One may let go of another.
    for (const one of listeners.toReversed()) if (!one.hasLetGo) one.call(reason);
    this.#controller?.abort(reason);
  }

  #letGo(one: Listener): void {
    if (one.hasLetGo) return;
    one.hasLetGo = true;
    const { before, after } = one;
    if (before !== undefined) before.after = after;
    if (after !== undefined) after.before = before;
    else if (this.#last === one) this.#last = before;
  }
}

/** A signal that is there anyway. */
export function stopBy(signal: AbortSignal): Stop {
  return new BySignal(signal);
}

class BySignal implements Stop {
  readonly signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  get isOver(): boolean {
    return this.signal.aborted;
  }

  get reason(): unknown {
    return this.signal.reason;
  }

  onEnd(listener: (reason: unknown) => void): () => void {
    const { signal } = this;
    const onAbort = () => listener(signal.reason);
    if (signal.aborted) {
      onAbort();
      return () => undefined;
    }
    signal.addEventListener('abort', onAbort, { once: true });
    return () => signal.removeEventListener('abort', onAbort);
  }
}

/**
 * The same object, with the `signal` of its `stop`: made where it is read, and also there in a copy. A getter that was
 * written in each object would be another one in each, and engines then treat every such object as one of a kind.
 */
export function withSignal<T extends { readonly stop: Stop }>(
  object: T,
): T & { readonly signal: AbortSignal } {
  return Object.defineProperty(object, 'signal', BY_STOP) as T & { readonly signal: AbortSignal };
}

const BY_STOP: PropertyDescriptor & ThisType<{ readonly stop: Stop }> = {
  enumerable: true,
  configurable: true,
  get() {
    return this.stop.signal;
  },
};
