/** Longest time that a timer can be set to, in milliseconds; one for longer would go off at once. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1;

/** Waits for something shared; giving up does not end it for the others. Rejects with the reason of `signal`. */
export async function abortable<T>(
  shared: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return shared;
  signal.throwIfAborted();
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      onAbort = () => reject(signal.reason as Error);
      signal.addEventListener('abort', onAbort, { once: true });
      shared.then(resolve, reject);
    });
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}

/** Waits so many milliseconds, or rejects with the reason of `signal`. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(ms, MAX_TIMER_MS));
    });
    await abortable(over, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether it happened in time. The timer keeps the program alive: it must not end in the middle of closing. */
export async function within(done: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.min(ms, MAX_TIMER_MS));
  });
  try {
    return await Promise.race([done.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
