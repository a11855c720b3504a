/** Files and folders that are open at a time. */
export const MAX_OPEN = 32;

/** As `Promise.all` over `map`, with at most `limit` of them under way: each may hold a file open. */
export async function mapBounded<T, R>(
  items: readonly T[],
  limit: number,
  make: (item: T) => R | Promise<R>,
): Promise<readonly R[]> {
  const made: R[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) {
      const value = make(items[at]!);
      made[at] = value instanceof Promise ? await value : value;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  return made;
}
