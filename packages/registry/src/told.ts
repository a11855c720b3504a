import type { Problem } from '@patchbay/protocols';

/** More than this of one source, and the oldest are forgotten: memory stays bounded. */
const MAX_PER_SOURCE = 1_000;

/** Which problems were told already: many views see the same ones, again and again. */
export class Told {
  readonly #bySource = new Map<string, Set<string>>();

  /** `first`: nothing of this source was told before. */
  note({ source, code, message, since, retryAt }: Problem): 'first' | 'new' | 'known' {
    const known = this.#bySource.get(source);
    // One failure may show in several ways until it is tried again: each question meets it.
    const key = retryAt ?? JSON.stringify([code, message, since]);
    if (known === undefined) {
      this.#bySource.set(source, new Set([key]));
      return 'first';
    }
    if (known.has(key)) return 'known';
    if (known.size >= MAX_PER_SOURCE) known.delete(known.values().next().value!);
    known.add(key);
    return 'new';
  }

  /** The source is gone; another of its name starts anew. */
  forget(source: string): void {
    this.#bySource.delete(source);
  }
}
