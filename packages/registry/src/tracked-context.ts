import type {
  CompileContext,
  Identity,
  PeerCommand,
  PeerQuery,
  PeerSkill,
  Problem,
  Scope,
  SessionState,
} from '@patchbay/protocols';

import type { Viewer } from './viewer.ts';

/**
 * What an answer was made of: `scope`, `identity`, `skills`, `commands`, `ids`, `state` and `state:<key>`.
 * An answer that read nothing holds for everybody.
 */
export type Reads = Set<string>;

/** How a context reaches the other capabilities. */
export interface Peers {
  skills(): Promise<readonly PeerSkill[]>;
  commands(): Promise<readonly PeerCommand[]>;
  skillsAt(uri: string): Promise<readonly PeerSkill[]>;
  ids(): readonly string[];
}

/** A context that remembers what is read of it, and what is reported through it. */
export class TrackedContext implements CompileContext {
  readonly reads: Reads = new Set();
  readonly reported: Problem[] = [];
  readonly signal: AbortSignal;
  readonly peers: PeerQuery;
  readonly #viewer: Viewer;

  constructor(viewer: Viewer, peers: Peers, signal: AbortSignal) {
    this.#viewer = viewer;
    this.signal = signal;
    const { reads } = this;
    this.peers = {
      skills: () => {
        reads.add('skills');
        return peers.skills();
      },
      commands: () => {
        reads.add('commands');
        return peers.commands();
      },
      // What is in no list changes unseen: whoever uses it opens it, and sees what it is then.
      skillsAt: (uri) => peers.skillsAt(uri),
      ids: () => {
        reads.add('ids');
        return peers.ids();
      },
    };
  }

  get scope(): Scope {
    this.reads.add('scope');
    return this.#viewer.scope;
  }

  get identity(): Identity | undefined {
    this.reads.add('identity');
    return this.#viewer.identity;
  }

  get state(): SessionState {
    const { reads } = this;
    const { state } = this.#viewer;
    reads.add('state');
    return {
      get: (key) => {
        reads.add(`state:${key}`);
        return state.get(key);
      },
      set: (key, value) => state.set(key, value),
      snapshot: () => {
        reads.add('state:*');
        return state.snapshot();
      },
      restore: (snapshot) => state.restore(snapshot),
    };
  }

  report(problem: Problem): void {
    this.reported.push(problem);
  }
}
