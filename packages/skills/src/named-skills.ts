import type { PeerSkill, Problem } from '@patchbay/protocols';

/** A skill under the name by which it is reached in a view. */
export interface NamedSkill {
  /** Its own name; `<source>:<name>` if another source's skill of that name is shown instead. */
  readonly name: string;
  readonly skill: PeerSkill;
}

/**
 * Every skill under one name: of several with the same name the one of greatest precedence (then the first by source) has
 * it, whatever the order in which they came.
 */
export function nameSkills(skills: readonly PeerSkill[]): readonly NamedSkill[] {
  const taken = new Set<string>();
  return skills
    .toSorted(
      (a, b) =>
        (b.entry.precedence ?? 0) - (a.entry.precedence ?? 0) || compare(a.source, b.source),
    )
    .map((skill) => {
      const { name, uri } = skill.entry;
      const names = [name, `${skill.source}:${name}`, `${skill.source}:${uri}`];
      const shown = names.find((candidate) => !taken.has(candidate)) ?? uri;
      taken.add(shown);
      return { name: shown, skill };
    })
    .toSorted((a, b) => compare(a.name, b.name));
}

/** What to tell of skills that lost their name. */
export function shadowProblems(named: readonly NamedSkill[]): readonly Problem[] {
  return named
    .filter(({ name, skill }) => name !== skill.entry.name)
    .map(({ name, skill }) => ({
      source: skill.source,
      code: 'skill-shadowed',
      severity: 'warning' as const,
      message: `The skill "${skill.entry.name}" of ${skill.entry.origin} is hidden by another one of that name; it is reached as "${name}".`,
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
