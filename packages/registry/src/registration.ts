import {
  Stopper,
  scopeDepth,
  type Capability,
  type PatchbayError,
  type Problem,
  type RegistrationScope,
} from '@patchbay/protocols';

import { Answers, type Surroundings } from './answers.ts';

/** One capability at one scope, and what it has answered. */
export class Registration {
  readonly capability: Capability;
  readonly id: string;
  readonly scope: RegistrationScope;
  readonly depth: number;
  /** Order of registration. */
  readonly serial: number;
  /** Order of first use; 0 as long as it was never used. Closing goes backwards. */
  activated = 0;
  /** What it is a part of: it is seen only where that is. */
  readonly parent: Registration | undefined;
  /** Found at registration, true for as long as it is registered. */
  readonly problems: readonly Problem[];
  readonly answers: Answers;
  readonly around: Surroundings;
  /** Over when it closes: nobody waits for its answers any more, its running calls end. */
  readonly gone: Stopper = new Stopper();
  /** Once it closes: what went wrong with that, if anything. */
  ended: Promise<PatchbayError | undefined> = Promise.resolve(undefined);

  get closed(): boolean {
    return this.gone.isOver;
  }

  constructor(
    capability: Capability,
    scope: RegistrationScope,
    serial: number,
    problems: readonly Problem[],
    parent: Registration | undefined,
    around: Surroundings,
  ) {
    this.capability = capability;
    this.id = capability.id;
    this.scope = scope;
    this.depth = scopeDepth(scope);
    this.serial = serial;
    this.problems = problems;
    this.parent = parent;
    this.around = around;
    this.answers = new Answers(this);
  }
}
