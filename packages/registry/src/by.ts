/** Orders by what the keys say, the first one that differs. Byte by byte: the same on every machine. */
export const by =
  <T>(...keys: readonly ((item: T) => string | number)[]) =>
  (a: T, b: T): number => {
    for (const key of keys) {
      const [x, y] = [key(a), key(b)];
      if (x !== y) return x < y ? -1 : 1;
    }
    return 0;
  };
