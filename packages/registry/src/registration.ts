import {
  scopeDepth,
  type Capability,
  type Problem,
  type RegistrationScope,
} from '@patchbay/protocols';

import { Answers } from './answers.ts';

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
  closed = false;
  /** Found at registration, true for as long as it is registered. */
  readonly problems: readonly Problem[];
  /** Running calls, to be cut when it closes. */
  readonly calls: Set<AbortController> = new Set();
  readonly answers: Answers = new Answers(this);
  /** Aborted when it closes. */
  readonly gone: AbortController = new AbortController();

  constructor(
    capability: Capability,
    scope: RegistrationScope,
    serial: number,
    problems: readonly Problem[],
  ) {
    this.capability = capability;
    this.id = capability.id;
    this.scope = scope;
    this.depth = scopeDepth(scope);
    this.serial = serial;
    this.problems = problems;
  }
}
