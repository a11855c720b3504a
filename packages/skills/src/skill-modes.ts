import type { PeerSkill } from '@patchbay/protocols';

/**
 * What is made of a skill without editing it: everything it offers (`on`), its name without its description in the
 * catalogue (`name-only`), a slash command and nothing for the model (`user-only`), nothing at all (`off`).
 */
export type SkillMode = 'on' | 'name-only' | 'user-only' | 'off';

/** By name, or by `<source>:<name>` for the skill of one source. */
export type SkillModes = Readonly<Record<string, SkillMode>>;

/** The more exact name counts. */
export function modeOf(modes: SkillModes, { source, entry }: PeerSkill): SkillMode {
  for (const key of [`${source}:${entry.name}`, entry.name]) {
    if (Object.hasOwn(modes, key)) return modes[key]!;
  }
  return 'on';
}
