import type { ActiveSkill, Json, Scope, SessionState } from '@patchbay/protocols';

/** A skill that was activated, as the session remembers it. */
export interface Activation {
  readonly source: string;
  readonly digest: string;
  readonly by: ActiveSkill['by'];
}

/**
 * Which skills are active, for one agent of a session: an agent's activations are not its sub-agent's. Plain JSON in the
 * session's state, so that they survive a restart.
 */
export class Activations {
  readonly #state: SessionState;
  readonly #key: string;

  constructor(state: SessionState, { agent }: Scope) {
    this.#state = state;
    this.#key = agent === undefined ? 'skills.active' : `skills.active:${agent}`;
  }

  all(): ReadonlyMap<string, Activation> {
    const stored = this.#state.get(this.#key);
    if (!isMap(stored)) return new Map();
    return new Map(
      Object.entries(stored).flatMap(([name, value]) =>
        isActivation(value) ? [[name, value]] : [],
      ),
    );
  }

  set(name: string, activation: Activation): void {
    this.#store(new Map([...this.all(), [name, activation]]));
  }

  #store(all: ReadonlyMap<string, Activation>): void {
    const entries = [...all].map(
      ([name, { source, digest, by }]) => [name, { source, digest, by }] as const,
    );
    this.#state.set(this.#key, Object.fromEntries(entries));
  }
}

function isMap(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isActivation(value: unknown): value is Activation {
  if (typeof value !== 'object' || value === null) return false;
  const { source, digest, by } = value as Record<string, unknown>;
  return typeof source === 'string' && typeof digest === 'string' && typeof by === 'string';
}
