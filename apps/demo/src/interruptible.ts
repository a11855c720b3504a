/**
 * Runs something that ends cleanly when the user interrupts it: `close` is called once, whatever happened. Gives the exit
 * code: that of `run`, 1 if it threw, 130 after Ctrl-C, 143 when it was asked to end, 141 when nobody reads its output any
 * more (as in `demo | head`).
 */
export async function interruptible(
  run: () => Promise<number>,
  close: () => Promise<void>,
): Promise<number> {
  const signals = { SIGINT: 130, SIGTERM: 143 } as const;
  const names = Object.keys(signals) as (keyof typeof signals)[];
  let interrupt: ((code: number) => void) | undefined;
  const interrupted = new Promise<number>((resolve) => (interrupt = resolve));
  const listeners = names.map((name) => [name, () => interrupt?.(signals[name])] as const);
  for (const [name, listener] of listeners) process.on(name, listener);
  const onBrokenPipe = () => interrupt?.(141);
  process.stdout.on('error', onBrokenPipe);
  const running = run();
  // What is cut off by the interruption fails, and nobody waits for it any more.
  running.catch(() => undefined);
  try {
    return await Promise.race([running, interrupted]);
  } catch (error) {
    console.error(error);
    return 1;
  } finally {
    await close();
    for (const [name, listener] of listeners) process.off(name, listener);
    // The listener on the output stays: what is written behind the break fails too, and is no news.
  }
}
