import { PatchbayError, scopeCovers, type Json, type SessionState } from '@patchbay/protocols';

/** A {@link SessionState} whose keys have versions, so that whoever compiled with an old value is known to be stale. */
export class VersionedState implements SessionState {
  readonly #values = new Map<string, Json>();
  readonly #versions = new Map<string, number>();
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
    for (const key of this.#versions.keys()) {
      const at = key.indexOf(':');
      if (at === -1 || !scopeCovers({ agent }, { agent: key.slice(at + 1) })) continue;
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
