import { PatchbayError, toPatchbayError, type Capability } from '@patchbay/protocols';

import { by } from './by.ts';
import type { Registration } from './registration.ts';
import { LATE, waitFor } from './waiting.ts';

/** Turn, agent, session, pool: in all, closing takes no longer than one capability of each may. */
const LEVELS = 4;

/**
 * Closes registrations: turns, then agents (the deepest first), then sessions, then the pool, each in reverse order of
 * first use; those that are in use elsewhere are only taken out. Every capability gets `limitMs` and is left behind after that. When
 * time runs short, because several hang, the rest closes at the same time. `ended` of each says what went wrong.
 * (RFC-0051 "Shutdown")
 */
export function closeInOrder(
  registrations: readonly Registration[],
  limitMs: number,
  isElsewhere: (capability: Capability) => boolean,
): void {
  const order = inClosingOrder(registrations);
  for (const registration of order) cut(registration);
  const disposed = new Set<Capability>();
  const lastStart = Date.now() + (LEVELS - 1) * limitMs;
  let before: Promise<unknown> = Promise.resolve();
  for (const registration of order) {
    // A capability that is registered twice is reported once.
    const { capability } = registration;
    registration.ended =
      disposed.has(capability) || isElsewhere(capability)
        ? waitFor(before, Infinity).then(() => undefined)
        : waitFor(before, lastStart - Date.now()).then(() => dispose(registration, limitMs));
    disposed.add(capability);
    before = registration.ended;
  }
}

export function inClosingOrder(registrations: readonly Registration[]): readonly Registration[] {
  return registrations.toSorted(
    by(
      ({ depth }) => -depth,
      ({ activated }) => -activated,
      ({ serial }) => -serial,
    ),
  );
}

/** Takes it out of use at once. */
function cut({ id, gone }: Registration): void {
  gone.endBy(() => new PatchbayError('closed', `"${id}" was closed.`, { source: id }));
}

async function dispose(
  { capability, id }: Registration,
  limitMs: number,
): Promise<PatchbayError | undefined> {
  try {
    const end = await waitFor(capability[Symbol.asyncDispose]?.(), limitMs);
    if (end !== LATE) return undefined;
    const text = `"${id}" did not close within ${limitMs / 1000} s and was left behind.`;
    return new PatchbayError('timeout', text, { source: id });
  } catch (error) {
    return toPatchbayError(error, 'source-failed', { source: id, what: `"${id}" failed to close` });
  }
}
