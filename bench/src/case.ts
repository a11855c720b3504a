/** What one measured run cost. */
export interface Cost {
  /** Wall time in milliseconds, or whatever the unit of the case is. */
  readonly value: number;
  /** CPU time in milliseconds of the process that did the work (user and system). */
  readonly cpu?: number;
}

/**
 * One way to do the work of a case: patchbay, a peer, or the floor (the least code that does it at all).
 *
 * The harness calls `setup` once, `run` many times, `answer` once, `teardown` once, also after a failure.
 */
export interface Arm {
  readonly name: string;
  setup?(): Promise<void>;
  /** Does the work once. Without a result the harness's own clocks count: wall time and CPU of this process. */
  run(): Promise<Cost | void>;
  teardown?(): Promise<void>;
  /** What the work led to, as plain data. All arms of a case must agree, or the comparison is worth nothing. */
  answer?(): Promise<unknown>;
}

/** A number that a case has to reach: `arm` divided by `against` is at most `atMost`; without `against`, `arm` itself. */
export interface Goal {
  readonly arm: string;
  readonly against?: string;
  readonly of: 'value' | 'cpu';
  readonly atMost: number;
}

export interface Case {
  readonly name: string;
  /** Of `value`: `ms`, `KB`, `MB/s`. */
  readonly unit: string;
  readonly arms: readonly Arm[];
  readonly goals: readonly Goal[];
  /** Runs of each arm that are thrown away first. Default 3. */
  readonly warmUp?: number;
  /** For what takes long: so many rounds are enough, where the limits ask for more. */
  readonly rounds?: number;
  /** A fact that does not vary (a size): measured once. */
  readonly once?: boolean;
}
