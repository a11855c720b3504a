import {
  normalizeScope,
  PatchbayError,
  type ExtensionView,
  type Identity,
  type RegistrationScope,
} from '@patchbay/protocols';
import type { ExtensionRegistry, NameFilter, ViewOptions } from '@patchbay/registry';

import type { McpServerEntry } from './server-entry.ts';

/** What narrows a view of a session: as in the registry, without the identity, which the session has. */
export type SessionViewOptions = Omit<ViewOptions, 'identity'>;

/** An agent of a session: a name, and what it sees. */
export interface Agent {
  /** A path: `coder`, `coder/researcher#1`. */
  readonly name: string;
  /**
   * What it sees, live. Need not be closed.
   * @throws PatchbayError `closed` if it is a sub-agent that has ended
   */
  view(options?: SessionViewOptions): ExtensionView;
  /**
   * Starts a sub-agent: it sees what its path lets it see, what this agent sees, and its own servers; `tools` and `skills`
   * take away from that, for the sub-agents of it too. Several of one name may run side by side.
   * @throws PatchbayError `invalid-scope` (of the name), `aborted` (by its signal), `closed` (this agent, its session or the
   * host has ended)
   */
  spawn(name: string, options?: SpawnOptions): Promise<SubAgent>;
}

export interface SpawnOptions {
  /** By the name that a model sees: `github__*`. Counts for the tools of `servers` too. */
  readonly tools?: NameFilter | readonly NameFilter[];
  /** By the skill's name. */
  readonly skills?: NameFilter | readonly NameFilter[];
  /** Servers of its own, as in `mcp_servers`; one replaces a server of the same id for it and its sub-agents. */
  readonly servers?: Readonly<Record<string, McpServerEntry>>;
  /** Interrupts it: aborting is {@link SubAgent.close} without waiting. Give the signal of the call that starts it. */
  readonly signal?: AbortSignal;
}

/**
 * An agent that works for another one. It ends with {@link close}, its signal, the agent that started it, the session, or the
 * host, whichever comes first. (RFC-0051 "Lifecycle Sequence Diagrams" 5 to 9)
 */
export interface SubAgent extends Agent, AsyncDisposable {
  /** The path of its parent, its name, and a number that no other one of this session has: `coder/researcher#1`. */
  readonly name: string;
  /**
   * Ends it and its sub-agents, the deepest first: compiles, turns and calls that are under way (cancelled at the servers),
   * its servers' registrations, the skills that it had activated. Connections stay with the pool, and what its parent sees
   * stays as it is. Twice is harmless.
   * @throws PatchbayError if one of its servers failed to close; it is out all the same
   */
  close(): Promise<void>;
}

export interface AgentFilters {
  readonly tools: readonly NameFilter[];
  readonly skills: readonly NameFilter[];
}

/** What agents need of their session and its host. */
export interface AgentHost {
  readonly registry: ExtensionRegistry;
  readonly session: string;
  readonly identity: Identity | undefined;
  /** Registers servers at a scope. */
  readonly setUp: (
    scope: RegistrationScope,
    own: { readonly servers?: Readonly<Record<string, McpServerEntry>> },
  ) => Promise<void>;
  /** What the configuration of an agent, and of those above it, lets it see. */
  readonly filtersOf: (agent: string) => AgentFilters;
  /** Told of what goes wrong with the end of an agent that nobody waits for. */
  readonly failed: (agent: string, error: unknown) => void;
}

/** What is taken away from an agent: nothing, from those that the program names. */
const NOTHING: AgentFilters = { tools: [], skills: [] };

/** The agents of one session: those that the program names, and those that they start. */
export class Agents {
  readonly #host: AgentHost;
  /** Sub-agents that have not ended, by path: what lets go of their signals. */
  readonly #running = new Map<string, () => void>();
  #started = 0;
  #over = false;

  constructor(host: AgentHost) {
    this.#host = host;
  }

  /** An agent that is there whenever somebody names it. */
  named(name: string): Agent {
    return {
      name,
      view: (options) => this.#view(name, NOTHING, options),
      spawn: (sub, options) => this.#spawn({ path: name, narrowed: NOTHING }, sub, options),
    };
  }

  /** Names of the sub-agents that run. */
  list(): readonly string[] {
    return [...this.#running.keys()];
  }

  /** The session has ended: whoever calls this closes all of its scope. */
  end(): void {
    this.#over = true;
    for (const path of this.list()) this.#forget(path);
  }

  #view(path: string, narrowed: AgentFilters, options: SessionViewOptions = {}): ExtensionView {
    const { registry, session, identity, filtersOf } = this.#host;
    const filters = [filtersOf(path), narrowed, filtersIn(options)];
    return registry.view(
      { session, agent: path },
      { ...options, ...(identity === undefined ? {} : { identity }), ...together(filters) },
    );
  }

  async #spawn(
    parent: { readonly path: string; readonly narrowed: AgentFilters },
    name: string,
    options: SpawnOptions = {},
  ): Promise<SubAgent> {
    assertName(name);
    const { servers, signal } = options;
    const path = `${parent.path}/${name}#${++this.#started}`;
    const scope = normalizeScope({ session: this.#host.session, agent: path });
    const narrowed = together([parent.narrowed, filtersIn(options)]);
    const assertRunning = () => {
      if (this.#running.has(path)) return;
      const cause: unknown = signal?.aborted === true ? signal.reason : undefined;
      if (cause !== undefined)
        throw new PatchbayError('aborted', `The sub-agent "${path}" was interrupted.`, { cause });
      throw new PatchbayError('closed', `The sub-agent "${path}" has ended; start another one.`);
    };
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= this.#close(path));
    this.#start(path, signal, () =>
      close().catch((error: unknown) => this.#host.failed(path, error)),
    );
    try {
      assertRunning();
      // What was remembered of one of the same name before a restart is not this one's.
      await this.#host.registry.close(scope);
      await this.#host.setUp(scope, servers === undefined ? {} : { servers });
      assertRunning();
    } catch (error) {
      // Also what was registered after it had ended.
      await this.#close(path).catch((late: unknown) => this.#host.failed(path, late));
      throw error;
    }
    return {
      name: path,
      view: (viewOptions) => {
        assertRunning();
        return this.#view(path, narrowed, viewOptions);
      },
      spawn: async (sub, subOptions) => {
        assertRunning();
        return this.#spawn({ path, narrowed }, sub, subOptions);
      },
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  /** Not if the session has ended, or its signal was aborted before. */
  #start(path: string, signal: AbortSignal | undefined, onAbort: () => void): void {
    if (this.#over || signal?.aborted === true) return;
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#running.set(path, () => signal?.removeEventListener('abort', onAbort));
  }

  #forget(path: string): void {
    this.#running.get(path)?.();
    this.#running.delete(path);
  }

  async #close(path: string): Promise<void> {
    for (const each of this.list())
      if (each === path || each.startsWith(`${path}/`)) this.#forget(each);
    // Another session of the same id may be there by now.
    if (this.#over) return;
    await this.#host.registry.close({ session: this.#host.session, agent: path });
  }
}

/** The number is ours to give, and a path is made of names. */
function assertName(name: unknown): asserts name is string {
  if (typeof name === 'string' && name !== '' && !/\/|#\d+$/.test(name)) return;
  throw new PatchbayError(
    'invalid-scope',
    `A sub-agent's name is a non-empty string without "/", that does not end in "#" and a number; this one is ${JSON.stringify(name)}.`,
  );
}

const filtersIn = ({ tools, skills }: SessionViewOptions): AgentFilters => ({
  tools: tools === undefined ? [] : [tools].flat(),
  skills: skills === undefined ? [] : [skills].flat(),
});

/** A name has to pass all of them. */
const together = (filters: readonly AgentFilters[]): AgentFilters => ({
  tools: filters.flatMap(({ tools }) => tools),
  skills: filters.flatMap(({ skills }) => skills),
});
