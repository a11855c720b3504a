/**
 * Whether `work` ends, well or not, within so many milliseconds and before `signal` is aborted. Never rejects: what it came to
 * is asked of `work` itself, also when it ends later.
 */
export async function endsWithin(
  work: Promise<unknown>,
  ms: number,
  signal?: AbortSignal,
): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop = (): void => undefined;
  const over = new Promise<false>((resolve) => {
    stop = () => resolve(false);
    if (signal?.aborted === true) stop();
    signal?.addEventListener('abort', stop, { once: true });
    timer = setTimeout(stop, Math.max(0, ms));
  });
  const ended = (): true => true;
  try {
    return await Promise.race([work.then(ended, ended), over]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}
