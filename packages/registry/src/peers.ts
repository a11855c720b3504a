import {
  isSkillResource,
  type CommandEntry,
  type OpenSkill,
  type PeerCommand,
  type PeerSkill,
  type SkillEntry,
} from '@patchbay/protocols';

import { ask } from './ask.ts';
import type { Answer, Patience, PeerTokens, Surroundings, Waiting } from './answers.ts';
import type { Registration } from './registration.ts';
import type { Peers } from './tracked-context.ts';
import { passes, type Viewer } from './viewer.ts';

/** What other capabilities answered, for one that asks. */
export class PeerAnswers implements Peers, PeerTokens {
  readonly #viewer: Viewer;
  readonly #asking: readonly Registration[];
  readonly #around: Surroundings;
  readonly #visible: readonly Registration[];
  readonly #patience: Patience;
  readonly #waiter: Waiting | undefined;
  readonly #handedOut = new Map<'skills' | 'commands', string>();

  /** `asking`: who asks, and for whom that one was asked. None of them is among its own peers, so that asking ends. */
  constructor(
    viewer: Viewer,
    asking: readonly Registration[],
    around: Surroundings,
    visible: readonly Registration[],
    patience: Patience,
    waiter: Waiting | undefined,
  ) {
    this.#viewer = viewer;
    this.#asking = asking;
    this.#around = around;
    this.#visible = visible.filter((r) => !asking.includes(r));
    this.#patience = patience;
    this.#waiter = waiter;
  }

  async skills(): Promise<readonly PeerSkill[]> {
    const answers = await this.#ask('skills');
    return answers
      .flatMap(({ registration, answer }) =>
        (answer.value ?? []).map((entry) => this.#peerSkill(registration, entry)),
      )
      .filter(({ entry }) => passes(this.#viewer.filter.skills, entry.name))
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

  token(facet: 'skills' | 'commands'): string | undefined {
    const known = this.#handedOut.get(facet);
    if (known !== undefined) return known;
    const parts: string[] = [];
    for (const registration of this.#visible) {
      const answers = registration.answers.of(facet);
      if (answers === undefined) continue;
      const answer = answers.peek(this.#viewer, this.#around, this.#asking);
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
        answer: await answers.get(
          this.#viewer,
          this.#around,
          this.#asking,
          this.#patience,
          this.#waiter,
        ),
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
        return ask(
          registration,
          { viewer: this.#viewer, around: this.#around, asking: this.#asking },
          (context) => capability.openSkill(entry.uri, context),
        );
      },
    };
  }
}

const tokenOf = (registration: Registration, answer: Answer<unknown>): string =>
  `${registration.serial}:${answer.serial}`;

function byNameThenSource(
  a: { readonly source: string; readonly entry: { readonly name: string } },
  b: { readonly source: string; readonly entry: { readonly name: string } },
): number {
  if (a.entry.name !== b.entry.name) return a.entry.name < b.entry.name ? -1 : 1;
  if (a.source === b.source) return 0;
  return a.source < b.source ? -1 : 1;
}
