import { PatchbayError, toPatchbayError, type Capability } from '@patchbay/protocols';

import type { Registration } from './registration.ts';

/**
 * Closes registrations: turns, then agents (the deepest first), then sessions, then the pool, each in reverse order of
 * first use; those in `keep` are only taken out. Every capability gets `limitMs` and is left behind after that. Returns what went wrong.
 * (RFC-0051 "Shutdown")
 */
export async function closeInOrder(
  registrations: readonly Registration[],
  limitMs: number,
  keep: ReadonlySet<Capability>,
): Promise<readonly PatchbayError[]> {
  const errors: PatchbayError[] = [];
  const order = registrations.toSorted(
    (a, b) => b.depth - a.depth || b.activated - a.activated || b.serial - a.serial,
  );
  for (const registration of order) cut(registration);
  const disposed = new Set<Capability>(keep);
  for (const registration of order) {
    if (disposed.has(registration.capability)) continue;
    disposed.add(registration.capability);
    const error = await dispose(registration, limitMs);
    if (error !== undefined) errors.push(error);
  }
  return errors;
}

/** Takes it out of use at once: nobody waits for its answers, its running calls end. */
function cut(registration: Registration): void {
  registration.closed = true;
  const reason = new PatchbayError('closed', `"${registration.id}" was closed.`, {
    source: registration.id,
  });
  registration.gone.abort(reason);
  for (const call of registration.calls) call.abort(reason);
}

async function dispose(
  registration: Registration,
  limitMs: number,
): Promise<PatchbayError | undefined> {
  const { capability, id } = registration;
  if (typeof capability[Symbol.asyncDispose] !== 'function') return undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), limitMs);
  });
  try {
    const end = await Promise.race([Promise.resolve(capability[Symbol.asyncDispose]!()), late]);
    return end === 'late'
      ? new PatchbayError(
          'timeout',
          `"${id}" did not close within ${limitMs / 1000} s and was left behind.`,
          { source: id },
        )
      : undefined;
  } catch (error) {
    return toPatchbayError(error, 'source-failed', { source: id, what: `"${id}" failed to close` });
  } finally {
    clearTimeout(timer);
  }
}
