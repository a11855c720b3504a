import { inspect, isDeepStrictEqual } from 'node:util';

import { PatchbayError } from '@patchbay/protocols';

/** How long anything may take that must end by itself, in milliseconds. */
const PATIENCE_MS = 5_000;

export function ensure(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

export function ensureEqual(actual: unknown, expected: unknown, what: string): void {
  ensure(
    isDeepStrictEqual(actual, expected),
    `${what}: expected ${show(expected)}, got ${show(actual)}`,
  );
}

export const show = (value: unknown): string => inspect(value, { depth: 4, breakLength: 120 });

export const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '';

/** Waits for `promise`, but not for ever. */
export async function within<T>(
  promise: Promise<T>,
  what: string,
  ms: number = PATIENCE_MS,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Looks at each turn of the event loop whether it is so, but not for ever. */
export async function until(isSo: () => boolean, what: string): Promise<void> {
  const over = new AbortController();
  const seen = async () => {
    while (!over.signal.aborted && !isSo()) await new Promise(setImmediate);
  };
  try {
    await within(seen(), what);
  } finally {
    over.abort();
  }
}

/** Whether it resolves or rejects does not matter: it ends. */
export async function ensureSettles(promise: Promise<unknown>, what: string): Promise<void> {
  await within(
    promise.then(
      () => undefined,
      () => undefined,
    ),
    what,
  );
}

/** It rejects with a PatchbayError, of one of `codes` if any is named. */
export async function ensureRejects(
  promise: Promise<unknown>,
  what: string,
  ...codes: readonly string[]
): Promise<PatchbayError> {
  const outcome = await within(
    promise.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    ),
    what,
  );
  ensure(
    'error' in outcome,
    `${what}: expected a rejection, got ${show('value' in outcome ? outcome.value : undefined)}`,
  );
  const { error } = outcome;
  ensure(PatchbayError.isInstance(error), `${what}: expected a PatchbayError, got ${show(error)}`);
  ensure(
    codes.length === 0 || codes.includes(error.code),
    `${what}: expected the code ${codes.join(' or ')}, got ${error.code} (${error.message})`,
  );
  return error;
}
