import type { ActiveSkill, Json, Scope, SessionState } from '@patchbay/protocols';

/** A skill, wherever it comes from: an entry of a compiled view is one. */
export interface SkillReference {
  readonly source: string;
  readonly uri: string;
}

/** A skill that was activated, as the session remembers it. */
export interface Activation extends SkillReference {
  /** Of the text that is in the conversation; absent where none is. */
  readonly digest?: string;
  /** How that text begins: where it is not found, it is in the conversation no more. */
  readonly opening?: string;
  readonly by: ActiveSkill['by'];
  /** A server serves it. */
  readonly served?: ServedActivation;
}

/** What is remembered of a skill that a server serves. */
export interface ServedActivation {
  /** The label of the server. */
  readonly server: string;
  /** The name by which the model knows it. */
  readonly name: string;
  /** What it consisted of when it was put in force; absent where that is not fixed. */
  readonly content?: string;
  /** It consists of something else by now: it is not in force any more, but its old text is in the conversation. */
  readonly changed?: true;
}

const OPENING = 200;

/** What tells a text from others. */
export const openingOf = (text: string): string => text.slice(0, OPENING);

/** For whom a skill is put in force. */
export interface ActivationOptions {
  /** The agent, as in its scope. Default: views of the session that name no agent. */
  readonly agent?: string | undefined;
}

/**
 * Puts a skill in force for an agent of a session: its text is in front of the model at each request, until it is
 * deactivated. `skill` is an entry of a compiled view, `state` the session's (`registry.state({ session })`).
 */
export function activateSkill(
  state: SessionState,
  { source, uri }: SkillReference,
  options: ActivationOptions = {},
): void {
  new Activations(state, options).set({ source, uri, by: 'program' });
}

/** Ends what `activateSkill`, the model or a command began. What was said in the conversation stays there. */
export function deactivateSkill(
  state: SessionState,
  skill: SkillReference,
  options: ActivationOptions = {},
): void {
  new Activations(state, options).delete(skill);
}

/**
 * Which skills are active, for one agent of a session: an agent's activations are not its sub-agent's. Plain JSON in the
 * session's state, so that they survive a restart.
 */
export class Activations {
  readonly #state: SessionState;
  readonly #key: string;

  constructor(state: SessionState, { agent }: Pick<Scope, 'agent'> | ActivationOptions) {
    this.#state = state;
    this.#key = agent === undefined ? 'skills.active' : `skills.active:${agent}`;
  }

  get(skill: SkillReference): Activation | undefined {
    return this.#all().find((known) => isSame(known, skill));
  }

  set(activation: Activation): void {
    this.#store([...this.#all().filter((known) => !isSame(known, activation)), activation]);
  }

  /** All that are in force. */
  all(): readonly Activation[] {
    return this.#all().filter(({ served }) => served?.changed !== true);
  }

  /** Skills of servers, those that have changed included. */
  served(): readonly (Activation & { readonly served: ServedActivation })[] {
    return this.#all().flatMap((known) =>
      known.served === undefined ? [] : [{ ...known, served: known.served }],
    );
  }

  /** Whether it is in force. */
  has(skill: SkillReference): boolean {
    const known = this.get(skill);
    return known !== undefined && known.served?.changed !== true;
  }

  /** Its text is something else by now: what was said of it holds no more. */
  end(activation: Activation & { readonly served: ServedActivation }): void {
    if (activation.served.changed === true) return;
    this.set({ ...activation, served: { ...activation.served, changed: true } });
  }

  delete(skill: SkillReference): void {
    this.#store(this.#all().filter((known) => !isSame(known, skill)));
  }

  #all(): readonly Activation[] {
    const stored = this.#state.get(this.#key);
    // What was restored may be anything.
    return Array.isArray(stored) ? (stored as readonly Json[]).filter(isActivation) : [];
  }

  #store(all: readonly Activation[]): void {
    const plain = all.map(({ source, uri, by, digest, opening, served }) => ({
      source,
      uri,
      by,
      ...(digest === undefined ? {} : { digest }),
      ...(opening === undefined ? {} : { opening }),
      ...(served === undefined ? {} : { served: { ...served } }),
    }));
    this.#state.set(this.#key, plain.length === 0 ? undefined : plain);
  }
}

const isSame = (a: SkillReference, b: SkillReference): boolean =>
  a.source === b.source && a.uri === b.uri;

function isActivation(value: unknown): value is Activation & Json {
  if (typeof value !== 'object' || value === null) return false;
  const { source, uri, digest, opening, by, served } = value as Record<string, unknown>;
  return (
    typeof source === 'string' &&
    typeof uri === 'string' &&
    typeof by === 'string' &&
    (digest === undefined || typeof digest === 'string') &&
    (opening === undefined || typeof opening === 'string') &&
    (served === undefined || isServed(served))
  );
}

function isServed(value: unknown): value is ServedActivation {
  if (typeof value !== 'object' || value === null) return false;
  const { server, name, content, changed } = value as Record<string, unknown>;
  return (
    typeof server === 'string' &&
    typeof name === 'string' &&
    (content === undefined || typeof content === 'string') &&
    (changed === undefined || changed === true)
  );
}
