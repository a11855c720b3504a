import { lstat, readlink } from 'node:fs/promises';
import { dirname, join, parse, resolve, sep } from 'node:path';

/** More links than this on one way are a loop. */
const MAX_LINKS = 40;

/**
 * What decides where a path leads: the names in folders that would have to change for it to lead elsewhere, or somewhere
 * at all. These are every link on the way, what the way ends with, and where it breaks off, the name that is missing.
 */
export async function wayTo(
  path: string,
): Promise<readonly { readonly folder: string; readonly name: string }[]> {
  const steps: { readonly folder: string; readonly name: string }[] = [];
  let { at, rest } = split(path);
  for (let links = 0; rest.length > 0;) {
    const [name, ...further] = rest as [string, ...string[]];
    const next = join(at, name);
    const found = await lstat(next).catch(() => undefined);
    const link = found?.isSymbolicLink() === true;
    if (found === undefined || link || further.length === 0) steps.push({ folder: at, name });
    if (found === undefined) break;
    if (!link) [at, rest] = [next, further];
    else {
      const target = ++links > MAX_LINKS ? undefined : await readlink(next).catch(() => undefined);
      if (target === undefined) break;
      const led = split(resolve(dirname(next), target));
      [at, rest] = [led.at, [...led.rest, ...further]];
    }
  }
  return steps;
}

function split(path: string): { at: string; rest: readonly string[] } {
  const absolute = resolve(path);
  const { root } = parse(absolute);
  return {
    at: root,
    rest: absolute
      .slice(root.length)
      .split(sep)
      .filter((part) => part !== ''),
  };
}
