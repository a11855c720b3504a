/** Bytes in use, after what is not has gone. */
export function heap(): number {
  const { gc } = globalThis as { gc?: () => void };
  if (gc === undefined) throw new Error('Start node with --expose-gc.');
  gc();
  gc();
  return process.memoryUsage().heapUsed;
}
