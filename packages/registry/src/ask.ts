import { PatchbayError, type CompileContext } from '@patchbay/protocols';

import type { Surroundings } from './answers.ts';
import type { Registration } from './registration.ts';
import { TrackedContext } from './tracked-context.ts';
import type { Viewer } from './viewer.ts';
import { LATE, untilAnyOf, waitFor, type Until } from './waiting.ts';

/** A question whose answer is not kept. */
export interface Question {
  readonly viewer: Viewer;
  readonly around: Surroundings;
  readonly until?: Until;
  /** For whom the capability is asked. */
  readonly asking?: readonly Registration[];
}

/**
 * Asks one capability something. It ends with the view, with the registration, and when it takes too long.
 * @throws PatchbayError `timeout`, `closed`, and whatever the capability throws
 */
export async function ask<T>(
  registration: Registration,
  { viewer, around, until, asking = [] }: Question,
  question: (context: CompileContext) => T | Promise<T>,
): Promise<T> {
  const own = untilAnyOf(until, viewer.ended, registration.gone);
  const { id } = registration;
  const ms = around.sourceTimeoutMs;
  try {
    const peers = around.peers(viewer, [...asking, registration]);
    const answer = await waitFor(
      question(new TrackedContext(viewer, peers, own.signal)),
      ms,
      own.life,
    );
    if (answer !== LATE) return answer;
    const text = `"${id}" did not answer within ${ms / 1000} s.`;
    const late = new PatchbayError('timeout', text, { source: id });
    own.end(late);
    throw late;
  } finally {
    own.release();
  }
}
