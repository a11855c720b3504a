import { PatchbayError, type Json, type SessionState } from '@patchbay/protocols';

import { AgentTree } from './agent-tree.ts';

/** A {@link SessionState} whose keys have versions, so that whoever compiled with an old value is known to be stale. */
export class VersionedState implements SessionState {
  readonly #values = new Map<string, Json>();
  readonly #versions = new Map<string, number>();
  /** Keys that end in a colon and the path of an agent. */
  readonly #ofAgents = new AgentTree<string>();
  #version = 0;

  get(key: string): Json | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: Json | undefined): void {
    if (value === undefined) {
      if (!this.#values.delete(key)) return;
    } else {
      this.#values.set(key, plain(key, value));
    }
    this.#versions.set(key, ++this.#version);
    const agent = agentOf(key);
    if (agent !== undefined) this.#ofAgents.add(agent, key);
  }

  snapshot(): { readonly [key: string]: Json } {
    return Object.fromEntries(this.#values);
  }

  restore(snapshot: { readonly [key: string]: Json }): void {
    for (const key of this.#values.keys())
      if (!Object.hasOwn(snapshot, key)) this.set(key, undefined);
    for (const [key, value] of Object.entries(snapshot)) this.set(key, value);
  }

  /** Drops what an agent and those below it remembered: the keys that end in a colon and its path. */
  forgetAgent(agent: string): void {
    for (const key of this.#ofAgents.walk(agent, { below: true })) {
      this.#ofAgents.delete(agentOf(key), key);
      this.#values.delete(key);
      this.#versions.delete(key);
      this.#version++;
    }
  }

  /** Of one key, or of everything. */
  version(key?: string): number {
    return key === undefined ? this.#version : (this.#versions.get(key) ?? 0);
  }
}

/** The path of the agent that a key belongs to. */
function agentOf(key: string): string | undefined {
  const at = key.indexOf(':');
  return at === -1 ? undefined : key.slice(at + 1);
}

/** A copy that nobody else holds, and proof that the value is JSON. */
function plain(key: string, value: Json): Json {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new PatchbayError('internal', `The session state "${key}" is not plain JSON.`, { cause });
  }
  if (text === undefined)
    throw new PatchbayError('internal', `The session state "${key}" is not plain JSON.`);
  return JSON.parse(text) as Json;
}
