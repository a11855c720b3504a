import { describe, expect, it, onTestFinished, vi } from 'vitest';

import { suiteTests, type Ended, type Suite } from '../src/index.ts';

/** What is said of what never ends. */
export const HANGS: RegExp = /did not end within/;

/** Turns of the event loop in which everything in this process has long come to rest. */
const PATIENT_TURNS = 200;

/** An implementation that breaks one requirement, and what is said of it. */
export interface Broken<Subject> {
  readonly subject: () => Subject | Promise<Subject>;
  readonly says: RegExp;
}

/** Proves a suite: the right implementation passes all of it, and each requirement catches one that breaks it. */
export function prove<Subject extends Ended>(
  suite: Suite<Subject>,
  right: () => Subject | Promise<Subject>,
  broken: Readonly<Record<string, Broken<Subject>>>,
): void {
  describe(`the suite of ${suite.contract}`, () => {
    it('has a broken implementation for each of its requirements', () => {
      expect(Object.keys(broken)).toEqual(suite.requirements.map(({ name }) => name));
    });

    for (const test of suiteTests(suite, { create: async () => right() })) {
      it(`lets a right one pass that ${test.name}`, () => test.run());
    }

    for (const [name, { subject, says }] of Object.entries(broken)) {
      it(`catches one of which it is not true that it ${name}`, async () => {
        const tests = suiteTests(suite, { create: async () => subject() });
        const [test] = tests.filter((each) => each.name === name);
        if (says !== HANGS) {
          await expect(test?.run()).rejects.toThrow(says);
          return;
        }
        vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
        onTestFinished(() => void vi.useRealTimers());
        await expect(hurried(test!.run())).rejects.toThrow(HANGS);
      });
    }
  });
}

/** Time flies for whoever waits for what never comes; what is at work gets many turns before. */
async function hurried(run: Promise<void>): Promise<void> {
  const ended = new AbortController();
  const watched = run.finally(() => ended.abort());
  watched.catch(() => undefined);
  for (let turn = 0; !ended.signal.aborted; turn++) {
    await new Promise(setImmediate);
    if (turn > PATIENT_TURNS) await vi.advanceTimersByTimeAsync(1_000);
  }
  return watched;
}
