import {
  PatchbayError,
  type ExtensionView,
  type Identity,
  type Json,
  type RegistrationScope,
  type SessionState,
} from '@patchbay/protocols';
import type { ExtensionRegistry } from '@patchbay/registry';

import type { McpServerEntry } from './server-entry.ts';
import { Agents, type Agent, type AgentFilters, type SessionViewOptions } from './sub-agent.ts';

/**
 * One claim on a session. The session lives on while anybody has a claim or uses one of its views, and is closed by the
 * host when it was idle for long enough: a stream that outlives its request handler goes on.
 */
export interface Session extends AsyncDisposable {
  readonly id: string;
  readonly identity: Identity | undefined;
  agent(name: string): Agent;
  /** What the session sees when no agent is named. */
  view(options?: SessionViewOptions): ExtensionView;
  readonly state: SessionState;
  /** Activations and approvals, as plain data: store it, and hand it to `openSession` after a restart. */
  snapshot(): { readonly [key: string]: Json };
  /** Gives the claim back; twice is harmless. */
  close(): Promise<void>;
}

export interface OpenSessionOptions {
  /** For whom calls are made. A session belongs to the identity that opened it first. */
  readonly identity?: Identity;
  /** Skill folders of this session only. Taken, like servers, only when the session is new. */
  readonly skills?: readonly string[];
  /** Servers of this session only, as in `mcp_servers`; one replaces a server of the same id for this session. */
  readonly servers?: Readonly<Record<string, McpServerEntry>>;
  /** What an earlier session of this id remembered. Taken only when the session is new. */
  readonly restore?: { readonly [key: string]: Json };
}

/** A row of `inspect()`. */
export interface InspectedSession {
  readonly id: string;
  /** How many hold a claim on it. */
  readonly claims: number;
  /** Open turns, compiles and calls. */
  readonly running: number;
  /** Names of its sub-agents that have not ended. */
  readonly subAgents: readonly string[];
}

interface Entry {
  readonly id: string;
  readonly identity: Identity | undefined;
  readonly agents: Agents;
  claims: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Everything that is the session's own is registered. */
  ready: Promise<void>;
}

/** What sessions need of the host. */
export interface SessionHost {
  readonly registry: ExtensionRegistry;
  readonly idleMs: number;
  /** Registers what is a session's or an agent's own. */
  readonly setUp: (
    scope: RegistrationScope,
    own: Pick<OpenSessionOptions, 'skills' | 'servers'>,
  ) => Promise<void>;
  /** What the configuration of an agent, and of those above it, lets it see. */
  readonly filtersOf: (agent: string) => AgentFilters;
  /** Something could not be ended. */
  readonly failed: (what: string, error: unknown) => void;
}

/** The sessions of a host: get or create, count claims, close what is idle. */
export class Sessions {
  readonly #host: SessionHost;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Map<string, Promise<void>>();

  constructor(host: SessionHost) {
    this.#host = host;
  }

  /** @throws PatchbayError `invalid-scope`, `identity-mismatch` */
  async open(id: string, options: OpenSessionOptions): Promise<Session> {
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
    await entry.ready;
    return this.#claim(entry, options.identity);
  }

  list(): readonly InspectedSession[] {
    return [...this.#entries.values()].map(({ id, claims, agents }) => {
      const { running } = this.#host.registry.activity({ session: id });
      return { id, claims, running, subAgents: agents.list() };
    });
  }

  async close(): Promise<void> {
    for (const { timer, agents } of this.#entries.values()) {
      clearTimeout(timer);
      agents.end();
    }
    this.#entries.clear();
    await Promise.all(this.#closing.values());
  }

  #create(id: string, options: OpenSessionOptions): Entry {
    const { identity, restore } = options;
    if (restore !== undefined) this.#host.registry.state({ session: id }).restore(restore);
    const { registry, setUp, filtersOf, failed } = this.#host;
    const ready = setUp({ session: id }, options);
    const agents = new Agents({ registry, session: id, identity, setUp, filtersOf, failed });
    const entry: Entry = { id, identity, agents, claims: 0, timer: undefined, ready };
    this.#entries.set(id, entry);
    ready.catch(() => this.#end(entry));
    return entry;
  }

  #claim(entry: Entry, identity: Identity | undefined): Session {
    const { registry } = this.#host;
    const { id } = entry;
    const who = identity === undefined ? {} : { identity };
    let last = registry.state({ session: id });
    /** Of now; of a session that has ended what it was in the end. */
    const stateNow = () => {
      if (this.#entries.get(id) === entry) last = registry.state({ session: id });
      return last;
    };
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
      get state() {
        return stateNow();
      },
      snapshot: () => stateNow().snapshot(),
      view: (options = {}) => registry.view({ session: id }, { ...options, ...who }),
      agent: (name) => entry.agents.named(name),
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  /** Looks again when the session has been idle for long enough, if nobody uses it until then. */
  #rest(entry: Entry, waitMs = this.#host.idleMs): void {
    clearTimeout(entry.timer);
    if (entry.claims > 0 || this.#entries.get(entry.id) !== entry) return;
    entry.timer = setTimeout(() => {
      const { running, lastUsedAt } = this.#host.registry.activity({ session: entry.id });
      const idle = Date.now() - lastUsedAt;
      if (running > 0) this.#rest(entry);
      else if (idle < this.#host.idleMs) this.#rest(entry, this.#host.idleMs - idle);
      else this.#end(entry);
    }, waitMs);
    entry.timer.unref();
  }

  #end(entry: Entry): void {
    this.#entries.delete(entry.id);
    entry.agents.end();
    const closing = this.#host.registry
      .close({ session: entry.id })
      .catch((error: unknown) => this.#host.failed(`session ${entry.id}`, error))
      .finally(() => this.#closing.delete(entry.id));
    this.#closing.set(entry.id, closing);
  }
}
