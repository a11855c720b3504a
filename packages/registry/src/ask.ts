import { PatchbayError } from '@patchbay/protocols';

import type { Asker } from './answers.ts';
import type { Registration } from './registration.ts';
import { TrackedContext } from './tracked-context.ts';
import { LATE, untilAnyOf, waitFor, type Until } from './waiting.ts';

/**
 * Asks one capability something whose answer is not kept. It ends with the view, with the registration, and when it takes
 * too long.
 * @throws PatchbayError `timeout`, `closed`, and whatever the capability throws
 */
export async function ask<T>(
  registration: Registration,
  { viewer, asking = [] }: Asker,
  question: (context: TrackedContext) => T | Promise<T>,
  until?: Until,
): Promise<T> {
  const own = untilAnyOf(until, viewer.ended, registration.gone);
  const { around } = registration;
  const { id } = registration;
  const ms = around.sourceTimeoutMs;
  try {
    const peers = around.peers({ viewer, asking: [...asking, registration] });
    const answer = await waitFor(
      question(new TrackedContext(viewer, peers, own.stop.signal)),
      ms,
      own.stop,
    );
    if (answer !== LATE) return answer;
    const text = `"${id}" did not answer within ${ms / 1000} s.`;
    const late = new PatchbayError('timeout', text, { source: id });
    own.stop.end(late);
    throw late;
  } finally {
    own.release();
  }
}
