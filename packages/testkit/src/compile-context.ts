import type {
  CompileContext,
  Identity,
  Json,
  PeerCommand,
  PeerSkill,
  Problem,
  Scope,
  SessionState,
} from '@patchbay/protocols';

/** For whom, and with which neighbours, a {@link testContext} is. */
export interface TestContextOptions {
  readonly scope?: Scope;
  readonly identity?: Identity;
  readonly skills?: readonly PeerSkill[];
  readonly commands?: readonly PeerCommand[];
  readonly signal?: AbortSignal;
}

/** A context to ask a capability with. `problems` is what was reported in it. */
export interface TestContext extends CompileContext {
  readonly problems: readonly Problem[];
}

/** A context of nobody in particular at pool scope, without neighbours, unless told otherwise. */
export function testContext(options: TestContextOptions = {}): TestContext {
  const problems: Problem[] = [];
  return {
    scope: options.scope ?? {},
    identity: options.identity,
    signal: options.signal ?? new AbortController().signal,
    peers: {
      skills: async () => options.skills ?? [],
      commands: async () => options.commands ?? [],
    },
    state: testState(),
    report: (problem) => void problems.push(problem),
    problems,
  };
}

/** A session's memory that nobody else shares. */
function testState(): SessionState {
  const values = new Map<string, Json>();
  return {
    get: (key) => values.get(key),
    set: (key, value) => {
      if (value === undefined) values.delete(key);
      else values.set(key, value);
    },
    snapshot: () => Object.fromEntries(values),
    restore: (snapshot) => {
      values.clear();
      for (const [key, value] of Object.entries(snapshot)) values.set(key, value);
    },
  };
}
