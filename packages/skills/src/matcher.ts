import { PatchbayError, type SkillEntry } from '@patchbay/protocols';

import { endsWithin } from './ends-within.ts';

/**
 * Chooses skills for what a user said: names of entries, or none. What it chooses is in force for the turn. Asked once for
 * each text of a turn. `signal` is aborted when it takes too long. (RFC-0051 "Dynamic Skill Injection")
 */
export type SkillMatcher = (
  userText: string,
  skills: readonly SkillEntry[],
  options: { readonly signal: AbortSignal },
) => readonly string[] | Promise<readonly string[]>;

/** What a turn has chosen, and for what. */
interface Chosen {
  readonly key: string;
  readonly names: Promise<ReadonlySet<string>>;
}

/** Turns end without telling: the oldest answers are forgotten, and would be asked for again. */
const MAX_TURNS = 256;

/** Asks a matcher once per turn and text, for at most a while. */
export class BoundedMatcher {
  readonly #matcher: SkillMatcher;
  readonly #limitMs: number;
  readonly #turns = new Map<string, Chosen>();

  constructor(matcher: SkillMatcher, limitMs: number) {
    this.#matcher = matcher;
    this.#limitMs = limitMs;
  }

  /** @throws PatchbayError `source-slow` after the limit, or what the matcher threw; the same again in the same turn */
  choose(
    turnId: string,
    userText: string,
    skills: readonly SkillEntry[],
  ): Promise<ReadonlySet<string>> {
    const key = JSON.stringify([
      userText,
      skills.map(({ name, description }) => [name, description]),
    ]);
    const before = this.#turns.get(turnId);
    if (before?.key === key) return before.names;
    const names = this.#ask(userText, skills);
    this.#turns.delete(turnId);
    this.#turns.set(turnId, { key, names });
    for (const oldest of this.#turns.keys()) {
      if (this.#turns.size <= MAX_TURNS) break;
      this.#turns.delete(oldest);
    }
    return names;
  }

  async #ask(userText: string, skills: readonly SkillEntry[]): Promise<ReadonlySet<string>> {
    const controller = new AbortController();
    const asked = Promise.resolve(this.#matcher(userText, skills, { signal: controller.signal }));
    if (await endsWithin(asked, this.#limitMs)) return new Set(await asked);
    const error = new PatchbayError(
      'source-slow',
      `The skill matcher took more than ${this.#limitMs / 1000} s; the catalogue alone is used in this turn.`,
    );
    controller.abort(error);
    throw error;
  }
}
