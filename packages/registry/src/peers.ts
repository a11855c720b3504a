import {
  isSkillResource,
  type CommandEntry,
  type OpenSkill,
  type PeerCommand,
  type PeerSkill,
  type SkillEntry,
} from '@patchbay/protocols';

import { ask } from './ask.ts';
import type { Answer, Asker, Patience, PeerTokens } from './answers.ts';
import { by } from './by.ts';
import type { Registration } from './registration.ts';
import type { Peers } from './tracked-context.ts';
import { passes } from './viewer.ts';

/** What other capabilities answered, for one that asks. */
export class PeerAnswers implements Peers, PeerTokens {
  readonly #asker: Asker;
  readonly #look: () => readonly Registration[];
  readonly #patience: Patience;
  readonly #handedOut = new Map<'skills' | 'commands', string>();

  #found: readonly Registration[] | undefined;

  /** `look`: what is visible. Most of those who may ask their peers never do. */
  constructor(asker: Asker, look: () => readonly Registration[], patience: Patience) {
    this.#asker = asker;
    this.#look = look;
    this.#patience = patience;
  }

  /** The same for all questions of one asker, so that what it was told and what is kept of that agree. */
  get #visible(): readonly Registration[] {
    const { asking } = this.#asker;
    this.#found ??= this.#look().filter((registration) => asking?.includes(registration) !== true);
    return this.#found;
  }

  async skills(): Promise<readonly PeerSkill[]> {
    const answers = await this.#ask('skills');
    return answers
      .flatMap(({ registration, answer }) =>
        (answer.value ?? []).map((entry) => this.#peerSkill(registration, entry)),
      )
      .filter(({ entry }) => passes(this.#asker.viewer.filter.skills, entry.name))
      .toSorted(byNameThenSource);
  }

  async commands(): Promise<readonly PeerCommand[]> {
    const answers = await this.#ask('commands');
    return answers
      .flatMap(({ registration, answer }) =>
        (answer.value ?? []).map((entry: CommandEntry) => ({ source: registration.id, entry })),
      )
      .toSorted(byNameThenSource);
  }

  async skillsAt(uri: string): Promise<readonly PeerSkill[]> {
    const found = this.#visible.map(async (registration) => {
      const { capability } = registration;
      if (!isSkillResource(capability)) return undefined;
      // Who cannot say has none; whoever opens it there is told why.
      const open = await ask(registration, this.#asker, (context) =>
        capability.openSkill(uri, context),
      ).catch(() => undefined);
      if (open === undefined || !passes(this.#asker.viewer.filter.skills, open.entry.name))
        return undefined;
      return this.#peerSkill(registration, open.entry);
    });
    return (await Promise.all(found)).filter((skill) => skill !== undefined);
  }

  ids(): readonly string[] {
    return this.#visible.map(({ id }) => id);
  }

  token(facet: 'skills' | 'commands'): string | undefined {
    const known = this.#handedOut.get(facet);
    if (known !== undefined) return known;
    const parts: string[] = [];
    for (const registration of this.#visible) {
      const answers = registration.answers.of(facet);
      if (answers === undefined) continue;
      const answer = answers.peek(this.#asker);
      if (answer === undefined) return undefined;
      parts.push(tokenOf(registration, answer));
    }
    return parts.join(' ');
  }

  async refresh(facet: 'skills' | 'commands'): Promise<string> {
    await this.#ask(facet);
    return this.#handedOut.get(facet)!;
  }

  async #ask<F extends 'skills' | 'commands'>(facet: F) {
    const asked = this.#visible.flatMap((registration) => {
      const answers = registration.answers.of(facet);
      return answers === undefined ? [] : [{ registration, answers }];
    });
    const all = await Promise.all(
      asked.map(async ({ registration, answers }) => ({
        registration,
        answer: await answers.get(this.#asker, this.#patience),
      })),
    );
    this.#handedOut.set(
      facet,
      all.map(({ registration, answer }) => tokenOf(registration, answer)).join(' '),
    );
    return all;
  }

  #peerSkill(registration: Registration, entry: SkillEntry): PeerSkill {
    const { capability } = registration;
    return {
      source: registration.id,
      entry,
      open: async (): Promise<OpenSkill | undefined> => {
        if (registration.closed || !isSkillResource(capability)) return undefined;
        return ask(registration, this.#asker, (context) =>
          capability.openSkill(entry.uri, context),
        );
      },
    };
  }
}

const tokenOf = (registration: Registration, answer: Answer<unknown>): string =>
  `${registration.serial}:${answer.serial}`;

const byNameThenSource = by<{ readonly source: string; readonly entry: { readonly name: string } }>(
  ({ entry }) => entry.name,
  ({ source }) => source,
);
