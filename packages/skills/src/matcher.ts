import { PatchbayError, type SkillEntry } from '@patchbay/protocols';

/**
 * Chooses skills for what a user said: names of entries, or none. What it chooses is in force for the turn.
 * (RFC-0051 "Dynamic Skill Injection")
 */
export type SkillMatcher = (
  userText: string,
  skills: readonly SkillEntry[],
) => readonly string[] | Promise<readonly string[]>;

/** @throws PatchbayError `source-slow` after `limitMs`, or what the matcher threw */
export async function match(
  matcher: SkillMatcher,
  userText: string,
  skills: readonly SkillEntry[],
  limitMs: number,
): Promise<ReadonlySet<string>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(
        new PatchbayError(
          'source-slow',
          `The skill matcher took more than ${limitMs / 1000} s; the catalogue alone is used.`,
        ),
      );
    }, limitMs);
  });
  try {
    return new Set(await Promise.race([matcher(userText, skills), late]));
  } finally {
    clearTimeout(timer);
  }
}
