import { watchIo } from './io-watch.ts';

/** One thing that an implementation of a contract must do. */
export interface Requirement<Subject> {
  /** Reads as a sentence whose subject is the implementation: "is disposed twice without harm". */
  readonly name: string;
  /** Rejects with an error that says what was expected and what came. */
  readonly check: (subject: Subject, making: Making) => Promise<void>;
}

/** What was seen while `create` made the subject. */
export interface Making {
  /** Node's names of what it opened outside of the process: `TCPWRAP`, `FSREQCALLBACK`. */
  readonly reached: readonly string[];
}

/** What an implementation of one contract must do. */
export interface Suite<Subject> {
  /** The contract: `Capability`, `SkillResource`. */
  readonly contract: string;
  readonly requirements: readonly Requirement<Subject>[];
}

/** A requirement that is known not to hold. */
export interface Skip {
  /** The exact name of the requirement. */
  readonly test: string;
  readonly reason: string;
}

/** How the thing under test is made, and which of its failures are known. */
export interface SuiteOptions<Subject> {
  /** Makes a fresh one for each requirement. It is ended after it. */
  readonly create: () => Promise<Subject>;
  /** An unknown name is an error, and so is a requirement that is skipped although it holds. */
  readonly skip?: readonly Skip[];
}

/** Ends what `create` started beside the thing under test itself: servers, folders. */
export interface Ended {
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** A requirement with everything it needs to run. */
export interface SuiteTest {
  readonly name: string;
  /** Rejects if the requirement does not hold; if it is skipped, rejects if it does. */
  readonly run: () => Promise<void>;
}

/**
 * The tests of a suite for one implementation, for a runner to register.
 * @throws Error if `skip` names a requirement that does not exist, names one twice, or gives no reason.
 */
export function suiteTests<Subject extends Ended>(
  suite: Suite<Subject>,
  { create, skip = [] }: SuiteOptions<Subject>,
): readonly SuiteTest[] {
  const reasons = new Map<string, string>();
  for (const { test, reason } of skip) {
    if (!suite.requirements.some(({ name }) => name === test)) {
      const known = suite.requirements.map(({ name }) => `\n- ${name}`).join('');
      throw new Error(`The suite ${suite.contract} has no requirement "${test}". It has:${known}`);
    }
    if (reasons.has(test)) throw new Error(`"${test}" is skipped twice.`);
    if (reason.trim() === '') throw new Error(`Say why "${test}" is skipped.`);
    reasons.set(test, reason);
  }
  return suite.requirements.map((requirement) => {
    const reason = reasons.get(requirement.name);
    if (reason === undefined) {
      return { name: requirement.name, run: () => checkOnce(requirement, create) };
    }
    return {
      name: `${requirement.name} [known not to: ${reason}]`,
      run: () => mustFail(requirement, create),
    };
  });
}

/** Makes a subject, checks it, and ends it. Rejects if the requirement does not hold. */
async function checkOnce<Subject extends Ended>(
  { check }: Requirement<Subject>,
  create: () => Promise<Subject>,
): Promise<void> {
  const { value: subject, reached } = await watchIo(create);
  try {
    await check(subject, { reached });
  } finally {
    await subject[Symbol.asyncDispose]?.();
  }
}

/** The requirement itself must fail; that its subject cannot be made or ended is no known failure. */
async function mustFail<Subject extends Ended>(
  { name, check }: Requirement<Subject>,
  create: () => Promise<Subject>,
): Promise<void> {
  let holds = false;
  const tried = async (subject: Subject, making: Making) => {
    holds = await check(subject, making).then(
      () => true,
      () => false,
    );
  };
  await checkOnce({ name, check: tried }, create);
  if (holds) throw new Error(`"${name}" is skipped, but it holds: remove the skip.`);
}
