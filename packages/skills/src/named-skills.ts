import type { PeerSkill, Problem } from '@patchbay/protocols';

import { clip, oneLine } from './catalogue.ts';
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
 *
 * Skills of servers come after all others, whatever they say: their own name is theirs only if nobody else has it.
 */
export async function nameSkills(
  skills: readonly PeerSkill[],
  modes: SkillModes = {},
): Promise<readonly NamedSkill[]> {
  const on = skills.filter((skill) => modeOf(modes, skill) !== 'off');
  const names = new Names(modes);
  await nameOwn(
    on.filter(({ entry }) => entry.served === undefined),
    names,
  );
  nameServed(
    on.filter(({ entry }) => entry.served !== undefined),
    names,
  );
  return names.named.toSorted((a, b) => compare(a.name, b.name));
}

/** Names that are given. */
class Names {
  readonly named: NamedSkill[] = [];
  readonly #taken = new Set<string>();
  readonly #folded = new Set<string>();
  readonly #modes: SkillModes;

  constructor(modes: SkillModes) {
    this.#modes = modes;
  }

  reserve(name: string): void {
    this.#taken.add(name);
    this.#folded.add(folded(name));
  }

  give(
    skill: PeerSkill,
    wanted: readonly string[],
    isTaken = (name: string) => this.has(name),
  ): void {
    const name = wanted.find((candidate) => !isTaken(candidate)) ?? wanted.at(-1)!;
    this.reserve(name);
    this.named.push(withMode(name, skill, this.#modes));
  }

  has(name: string): boolean {
    return this.#taken.has(name);
  }

  /** Also if a model could take one for the other. */
  hasLike(name: string): boolean {
    return this.#folded.has(folded(name));
  }
}

async function nameOwn(skills: readonly PeerSkill[], names: Names): Promise<void> {
  const byName = new Map<string, PeerSkill[]>();
  const sorted = skills.toSorted(
    (a, b) => precedenceOf(b) - precedenceOf(a) || compare(a.source, b.source),
  );
  for (const skill of sorted) {
    const { name } = skill.entry;
    const others = byName.get(name);
    if (others === undefined) byName.set(name, [skill]);
    else if (!(await isOneOf(skill, others))) others.push(skill);
  }
  for (const name of byName.keys()) names.reserve(name);
  for (const [name, [first, ...others]] of byName) {
    names.give(first!, [name], () => false);
    for (const skill of others) {
      const { source, entry } = skill;
      names.give(skill, [`${source}:${name}`, `${source}:${entry.uri}`, entry.uri]);
    }
  }
}

/** Of several that want one name nobody has it: which one came first says nothing about which one was meant. */
function nameServed(skills: readonly PeerSkill[], names: Names): void {
  const sorted = skills.toSorted(
    (a, b) => compare(a.source, b.source) || compare(a.entry.uri, b.entry.uri),
  );
  const count = (keyOf: (skill: PeerSkill) => string) => {
    const counts = new Map<string, number>();
    for (const skill of sorted) counts.set(keyOf(skill), (counts.get(keyOf(skill)) ?? 0) + 1);
    return (skill: PeerSkill) => counts.get(keyOf(skill)) === 1;
  };
  const ownName = ({ entry }: PeerSkill) => folded(plainName(entry));
  const ofServer = (skill: PeerSkill) => JSON.stringify([skill.source, ownName(skill)]);
  const isAlone = count(ownName);
  const isAloneInServer = count(ofServer);
  const qualified: { readonly skill: PeerSkill; readonly wanted: readonly string[] }[] = [];
  for (const skill of sorted) {
    const { source, entry } = skill;
    const name = plainName(entry);
    // A colon stands between a source and a name: who writes one himself does not become another's.
    if (isAlone(skill) && !name.includes(':') && !names.hasLike(name)) names.give(skill, [name]);
    else {
      const { server } = entry.served!;
      const short = isAloneInServer(skill) ? [`${server}:${name}`] : [];
      const long = [`${server}:${wayOf(entry)}`, `${server}:${oneLine(entry.uri)}`];
      qualified.push({ skill, wanted: [...short, ...long, `${source}:${entry.uri}`] });
    }
  }
  for (const { skill, wanted } of qualified) names.give(skill, wanted);
}

/** Without what people do not see, and in one way to write it. */
const plainName = ({ name, uri }: PeerSkill['entry']): string =>
  clip(oneLine(name.normalize('NFKC')), MAX_NAME) || uri;

/** Which of several of one name it is: `skill://team/review/SKILL.md` is `team/review`. */
const wayOf = ({ uri }: PeerSkill['entry']): string =>
  oneLine(uri.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '').replace(/\/SKILL\.md$/, ''));

const MAX_NAME = 64;

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
  const winners = new Map(named.map(({ name, skill }) => [folded(name), skill]));
  return named
    .filter(({ name, skill }) => name !== skill.entry.name)
    .map(({ name, skill: { source, entry } }) => {
      const winner = winners.get(folded(entry.name))?.entry.origin;
      const shown = oneLine(entry.name);
      const why =
        entry.served === undefined
          ? `is hidden by that of ${winner ?? 'another source'}; it is reached as "${name}". Rename one of them.`
          : winner === undefined
            ? `is not the only one that a server calls so, or not called so that it can be told from others; it is reached as "${name}".`
            : `may not take the name from that of ${winner}; it is reached as "${name}".`;
      return {
        source,
        code: 'skill-shadowed',
        severity: 'warning' as const,
        message: `The skill "${shown}" of ${entry.origin} ${why}`,
      };
    });
}

/** By exact name, by the address that is nobody else's, else by a name that differs only in `_`, `-` and case. */
export function findSkill(named: readonly NamedSkill[], name: string): NamedSkill | undefined {
  return (
    named.find((known) => known.name === name) ??
    single(named.filter(({ skill }) => skill.entry.uri === name)) ??
    named.find((known) => folded(known.name) === folded(name))
  );
}

const single = <T>(found: readonly T[]): T | undefined =>
  found.length === 1 ? found[0] : undefined;

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
