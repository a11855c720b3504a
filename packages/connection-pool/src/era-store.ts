/** What a server turned out to be. Plain JSON. */
export type EraVerdict =
  /** It knows 2025-11-25 or an earlier revision: it is greeted with `initialize`. */
  | { readonly era: 'legacy'; /** Milliseconds since 1970. */ readonly at: number }
  /** It knows 2026-07-28 or a later revision, and said this about itself (`server/discover`). */
  | {
      readonly era: 'modern';
      readonly at: number;
      readonly discover: Readonly<Record<string, unknown>>;
    };

/**
 * Where it is remembered what servers turned out to be, so that a server is not asked again at every connect. The default
 * lives as long as its pool; one that writes to a file spares the next start the question, too. One that fails only costs
 * that question.
 *
 * A key is a hash of a server's configuration and of whoever its `sharing` keeps apart: what is kept under it must not be
 * given for another one.
 */
export interface EraStore {
  get(key: string): EraVerdict | undefined | Promise<EraVerdict | undefined>;
  set(key: string, verdict: EraVerdict): void | Promise<void>;
  delete(key: string): void | Promise<void>;
}

/** Verdicts that are kept; the oldest are forgotten. */
const MAX_KEPT = 1_000;

/** The default {@link EraStore}. */
export function eraMemory(): EraStore {
  const kept = new Map<string, EraVerdict>();
  return {
    get: (key) => kept.get(key),
    set: (key, verdict) => {
      kept.delete(key);
      kept.set(key, verdict);
      if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
    },
    delete: (key) => void kept.delete(key),
  };
}
