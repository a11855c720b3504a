import type { PeerSkill, Problem } from '@patchbay/protocols';

import { modeOf, type SkillModes } from './skill-modes.ts';

/** A skill under the name by which it is reached in a view. */
export interface NamedSkill {
  /** Its own name; `<source>:<name>` if another source's skill of that name is shown instead. */
  readonly name: string;
  readonly skill: PeerSkill;
  /** In the catalogue, and for the model's tools. */
  readonly forModel: boolean;
  /** A slash command. */
  readonly forUser: boolean;
  /** The catalogue says no more than its name. */
  readonly nameOnly: boolean;
}

/**
 * Every skill under one name: of several with the same name the one of greatest precedence (then the first by source) has
 * it, whatever the order in which they came. The same SKILL.md twice is one skill: by digest where both sources know it,
 * else by what both give when they are opened. What is switched off holds no name. Sorted by name.
 */
export async function nameSkills(
  skills: readonly PeerSkill[],
  modes: SkillModes = {},
): Promise<readonly NamedSkill[]> {
  const byName = new Map<string, PeerSkill[]>();
  const sorted = skills
    .filter((skill) => modeOf(modes, skill) !== 'off')
    .toSorted((a, b) => precedenceOf(b) - precedenceOf(a) || compare(a.source, b.source));
  for (const skill of sorted) {
    const { name } = skill.entry;
    const others = byName.get(name);
    if (others === undefined) byName.set(name, [skill]);
    else if (!(await isOneOf(skill, others))) others.push(skill);
  }
  const taken = new Set(byName.keys());
  const named: NamedSkill[] = [];
  for (const [name, [first, ...others]] of byName) {
    named.push(withMode(name, first!, modes));
    for (const skill of others) {
      const names = [`${skill.source}:${name}`, `${skill.source}:${skill.entry.uri}`];
      const shown = names.find((candidate) => !taken.has(candidate)) ?? skill.entry.uri;
      taken.add(shown);
      named.push(withMode(shown, skill, modes));
    }
  }
  return named.toSorted((a, b) => compare(a.name, b.name));
}

function withMode(name: string, skill: PeerSkill, modes: SkillModes): NamedSkill {
  const mode = modeOf(modes, skill);
  const { modelInvocable, userInvocable } = skill.entry;
  return {
    name,
    skill,
    forModel: modelInvocable !== false && mode !== 'user-only',
    forUser: userInvocable !== false,
    nameOnly: mode === 'name-only',
  };
}

async function isOneOf(skill: PeerSkill, others: readonly PeerSkill[]): Promise<boolean> {
  for (const other of others) if (await isSame(skill, other)) return true;
  return false;
}

async function isSame(a: PeerSkill, b: PeerSkill): Promise<boolean> {
  if (a.entry.digest !== undefined && b.entry.digest !== undefined)
    return a.entry.digest === b.entry.digest;
  if (a.entry.description !== b.entry.description) return false;
  try {
    const [one, other] = await Promise.all([a.open(), b.open()]);
    return one !== undefined && one.digest === other?.digest;
  } catch {
    // What cannot be read is shown: whoever calls for it is told why.
    return false;
  }
}

/** What to tell of skills that lost their name. */
export function shadowProblems(named: readonly NamedSkill[]): readonly Problem[] {
  const winners = new Map(named.map(({ name, skill }) => [name, skill]));
  return named
    .filter(({ name, skill }) => name !== skill.entry.name)
    .map(({ name, skill: { source, entry } }) => ({
      source,
      code: 'skill-shadowed',
      severity: 'warning' as const,
      message: `The skill "${entry.name}" of ${entry.origin} is hidden by that of ${winners.get(entry.name)?.entry.origin ?? 'another source'}; it is reached as "${name}". Rename one of them.`,
    }));
}

/** By exact name, else by one that differs only in `_`, `-` and case. */
export function findSkill(named: readonly NamedSkill[], name: string): NamedSkill | undefined {
  return (
    named.find((known) => known.name === name) ??
    named.find((known) => folded(known.name) === folded(name))
  );
}

/** Names that were perhaps meant. */
export function nearNames(named: readonly NamedSkill[], name: string): readonly string[] {
  const wanted = folded(name);
  const grams = gramsOf(wanted);
  return named
    .map((known) => ({ name: known.name, likeness: likeness(grams, gramsOf(folded(known.name))) }))
    .filter(({ likeness: value }) => value > 0.4)
    .toSorted((a, b) => b.likeness - a.likeness || compare(a.name, b.name))
    .slice(0, 3)
    .map(({ name: near }) => near);
}

const precedenceOf = ({ entry }: PeerSkill): number => entry.precedence ?? 0;

const folded = (name: string): string => name.toLowerCase().replaceAll('_', '-');

/** Pairs of neighbouring characters; their overlap (Dice) is how alike two names are. */
function gramsOf(text: string): ReadonlySet<string> {
  return new Set(Array.from({ length: text.length + 1 }, (_, i) => ` ${text} `.slice(i, i + 2)));
}

function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const shared = [...a].filter((gram) => b.has(gram)).length;
  return (2 * shared) / (a.size + b.size);
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
