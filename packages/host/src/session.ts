import {
  PatchbayError,
  type ExtensionView,
  type Identity,
  type Json,
  type SessionState,
} from '@patchbay/protocols';
import type { ExtensionRegistry, ViewOptions } from '@patchbay/registry';

/** What narrows a view of a session: as in the registry, without the identity, which the session has. */
export type SessionViewOptions = Omit<ViewOptions, 'identity'>;

/** An agent of a session: a name, and what it sees. */
export interface Agent {
  /** A path: `coder`, `coder/researcher`. */
  readonly name: string;
  /** What it sees, live. Need not be closed. */
  view(options?: SessionViewOptions): ExtensionView;
}

/**
 * One claim on a session. The session itself lives on while anybody has a claim or uses one of its views, and is closed
 * by the host when it was idle for long enough: a stream that outlives its request handler goes on.
 */
export interface Session extends AsyncDisposable {
  readonly id: string;
  readonly identity: Identity | undefined;
  agent(name: string): Agent;
  /** What the session sees when no agent is named. */
  view(options?: SessionViewOptions): ExtensionView;
  /** Activations and approvals, as plain data: store it, and hand it to `openSession` after a restart. */
  snapshot(): { readonly [key: string]: Json };
  readonly state: SessionState;
  /** Gives the claim back; twice is harmless. */
  close(): Promise<void>;
}

/** What a session is made of. */
interface Entry {
  readonly id: string;
  readonly identity: Identity | undefined;
  claims: number;
  /** Turns and calls that are under way. */
  busy: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly ready: Promise<void>;
}

export interface OpenOptions {
  /** For whom calls are made. A session belongs to the identity that opened it first. */
  readonly identity?: Identity;
  /** Skill folders of this session only. */
  readonly skills?: readonly string[];
  /** What an earlier session of this id remembered. Only taken when the session is new. */
  readonly restore?: { readonly [key: string]: Json };
}

/** The sessions of a host: get or create, count claims, close what is idle. */
export class Sessions {
  readonly #registry: ExtensionRegistry;
  readonly #idleMs: number;
  readonly #setUp: (id: string, options: OpenOptions) => void;
  readonly #failed: (id: string, error: unknown) => void;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Map<string, Promise<void>>();

  constructor(
    registry: ExtensionRegistry,
    options: {
      readonly idleMs: number;
      /** Registers what is the session's own. */
      readonly setUp: (id: string, options: OpenOptions) => void;
      readonly failed: (id: string, error: unknown) => void;
    },
  ) {
    this.#registry = registry;
    this.#idleMs = options.idleMs;
    this.#setUp = options.setUp;
    this.#failed = options.failed;
  }

  async open(id: string, options: OpenOptions): Promise<Session> {
    if (typeof id !== 'string' || id === '') {
      throw new PatchbayError('invalid-scope', 'A session id is a non-empty string.');
    }
    await this.#closing.get(id);
    const known = this.#entries.get(id);
    if (known !== undefined && known.identity?.id !== options.identity?.id) {
      throw new PatchbayError(
        'identity-mismatch',
        `The session ${JSON.stringify(id)} belongs to another identity. Use a session id of its own for each identity.`,
      );
    }
    const entry = known ?? this.#create(id, options);
    entry.claims++;
    clearTimeout(entry.timer);
    return this.#claim(entry, options.identity);
  }

  list(): readonly { readonly id: string; readonly claims: number; readonly busy: number }[] {
    return [...this.#entries.values()].map(({ id, claims, busy }) => ({ id, claims, busy }));
  }

  async close(): Promise<void> {
    for (const { timer } of this.#entries.values()) clearTimeout(timer);
    this.#entries.clear();
    await Promise.all(this.#closing.values());
  }

  #create(id: string, options: OpenOptions): Entry {
    const entry: Entry = { id, identity: options.identity, claims: 0, busy: 0, timer: undefined, ready: Promise.resolve() };
    this.#entries.set(id, entry);
    try {
      this.#setUp(id, options);
      if (options.restore !== undefined) this.#registry.state({ session: id }).restore(options.restore);
    } catch (error) {
      this.#entries.delete(id);
      throw error;
    }
    return entry;
  }

  #claim(entry: Entry, identity: Identity | undefined): Session {
    const registry = this.#registry;
    const { id } = entry;
    const view = (agent: string | undefined, options: SessionViewOptions = {}) =>
      watched(
        registry.view(
          { session: id, ...(agent === undefined ? {} : { agent }) },
          { ...options, ...(identity === undefined ? {} : { identity }) },
        ),
        (change) => {
          entry.busy += change;
          this.#rest(entry);
        },
      );
    let closed = false;
    const close = async () => {
      if (closed) return;
      closed = true;
      entry.claims--;
      this.#rest(entry);
    };
    return {
      id,
      identity,
      state: registry.state({ session: id }),
      snapshot: () => registry.state({ session: id }).snapshot(),
      agent: (name) => ({ name, view: (options) => view(name, options) }),
      view: (options) => view(undefined, options),
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  /** Starts the clock when nobody claims or uses the session, stops it otherwise. */
  #rest(entry: Entry): void {
    clearTimeout(entry.timer);
    if (entry.claims > 0 || entry.busy > 0 || this.#entries.get(entry.id) !== entry) return;
    entry.timer = setTimeout(() => this.#end(entry), this.#idleMs);
    entry.timer.unref();
  }

  #end(entry: Entry): void {
    this.#entries.delete(entry.id);
    const closing = this.#registry
      .close({ session: entry.id })
      .catch((error: unknown) => this.#failed(entry.id, error))
      .finally(() => this.#closing.delete(entry.id));
    this.#closing.set(entry.id, closing);
  }
}

/** A view that tells when something of it begins (+1) and ends (-1): compiles, calls, turns. */
function watched(view: ExtensionView, busy: (change: 1 | -1) => void): ExtensionView {
  const during = async <T>(run: () => Promise<T>): Promise<T> => {
    busy(1);
    try {
      return await run();
    } finally {
      busy(-1);
    }
  };
  const counted = new WeakSet<object>();
  return Object.assign(Object.create(view) as ExtensionView, {
    compile: (options?: Parameters<ExtensionView['compile']>[0]) => during(() => view.compile(options)),
    current: () => view.current(),
    beginTurn: (input?: Parameters<ExtensionView['beginTurn']>[0]) => {
      const turn = view.beginTurn(input);
      if (counted.has(turn)) return turn;
      counted.add(turn);
      const { prepare, callTool } = turn;
      return Object.assign(Object.create(turn) as typeof turn, {
        prepare: (options?: Parameters<typeof prepare>[0]) => during(() => turn.prepare(options)),
        callTool: (...args: Parameters<typeof callTool>) => during(() => turn.callTool(...args)),
        current: () => turn.current(),
        close: () => turn.close(),
        [Symbol.asyncDispose]: () => turn.close(),
      });
    },
    changes: (options?: Parameters<ExtensionView['changes']>[0]) => view.changes(options),
    close: () => view.close(),
    [Symbol.asyncDispose]: () => view.close(),
  });
}
