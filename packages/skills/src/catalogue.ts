import type { Problem, SkillEntry } from '@patchbay/protocols';

import type { NamedSkill } from './named-skills.ts';

/** Of what a server says of a skill, in characters: the specification's limit for a description. */
const MAX_SERVED_TEXT = 1_024;

const INTRODUCTION =
  'Skills hold instructions for particular tasks. Before you do a task that one of them describes, ' +
  'call activate_skill with its name and follow what it says.';
const SHORTENED = 'Some are listed by name only; list_skills describes them all.';

/** The catalogue, and what had to be left out of it. */
export interface Catalogue {
  readonly text: string;
  readonly problem: Problem | undefined;
}

/**
 * The catalogue for the system prompt: metadata only, the same text for the same skills; nothing at all without skills.
 *
 * Within `budget` characters as many skills as fit have their whole description, those of greater precedence first, then by
 * name; the others have their name; where not even the names fit, the rest is counted. A description is never cut: a model
 * that reads half of one does not find the skill.
 */
export function catalogueOf(
  skills: readonly NamedSkill[],
  budget: number,
  source: string,
): Catalogue | undefined {
  if (skills.length === 0) return undefined;
  const items = skills.map((named) => ({ named, whole: wholeItem(named), short: nameItem(named) }));
  let left = budget - INTRODUCTION.length - SHORTENED.length;
  const ranked = items.toSorted((a, b) => rank(b.named) - rank(a.named));
  const shown = new Set<(typeof items)[number]>();
  for (const item of ranked) {
    if (item.short.length > left) continue;
    left -= item.short.length;
    shown.add(item);
  }
  const whole = new Set<(typeof items)[number]>();
  for (const item of ranked) {
    const more = item.whole.length - item.short.length;
    if (item.named.nameOnly || !shown.has(item) || more > left) continue;
    left -= more;
    whole.add(item);
  }
  const lines = items
    .filter((item) => shown.has(item))
    .map((item) => (whole.has(item) ? item.whole : item.short));
  const missing = items.length - shown.size;
  if (missing > 0) lines.push(`<more count="${missing}"/>`);
  const short = items.filter((item) => !whole.has(item));
  const introduction = short.length === 0 ? INTRODUCTION : `${INTRODUCTION} ${SHORTENED}`;
  const cut = short.filter((item) => !item.named.nameOnly).map((item) => item.named.name);
  return {
    text: `${introduction}\n<available_skills>\n${lines.join('\n')}\n</available_skills>`,
    problem: cut.length === 0 ? undefined : overBudget(source, budget, cut, missing),
  };
}

function overBudget(
  source: string,
  budget: number,
  cut: readonly string[],
  missing: number,
): Problem {
  const names =
    cut.slice(0, 20).join(', ') + (cut.length > 20 ? ` and ${cut.length - 20} more` : '');
  const without = missing === 0 ? '' : ` (${missing} of them without their name)`;
  return {
    source,
    code: 'catalogue-budget',
    severity: 'warning',
    message: `The catalogue is full at ${budget} characters: ${cut.length} skills are in it without their description${without}: ${names}. Shorten descriptions, switch skills off, or raise \`catalogueChars\`.`,
  };
}

const rank = ({ skill }: NamedSkill): number => skill.entry.precedence ?? 0;

function wholeItem({ name, skill: { entry } }: NamedSkill): string {
  const description = [entry.description, entry.whenToUse]
    .filter((text) => text !== undefined)
    .map((text) => (entry.served === undefined ? text : clip(text, MAX_SERVED_TEXT)))
    .join(' ');
  const origin = serverItem(entry) || `<origin>${inline(entry.origin)}</origin>`;
  return `<skill><name>${inline(name)}</name><description>${inline(description)}</description>${origin}</skill>`;
}

const nameItem = ({ name, skill: { entry } }: NamedSkill): string =>
  `<skill><name>${inline(name)}</name>${serverItem(entry)}</skill>`;

/** Which server says so; nothing for what lies here. */
const serverItem = ({ served }: SkillEntry): string =>
  served === undefined ? '' : `<server>${inline(served.server)}</server>`;

/** One line of text that cannot break out of the markup around it. */
export const inline = (text: string): string => escapeMarkup(oneLine(text));

/** One line, without characters that cannot be seen. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(INVISIBLE, '').trim();
}

/** Control, zero-width, direction and tag characters: they hide text from people, not from models. */
const INVISIBLE =
  /[\p{Cc}\u00AD\u200B\u202A-\u202E\u2060-\u2064\u2066-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu;

/** At most `length` characters, the last one a sign that there were more. */
export function clip(text: string, length: number): string {
  const characters = Array.from(text);
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`;
}

/**
 * Text of a server in which nothing is left that opens or closes markup, of whatever kind, or that people do not see. What
 * stands between quotes or spaces, as in `a < b`, stays as it is.
 */
export function withoutMarkup(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll(INVISIBLE, (found) => (found === '\n' || found === '\t' ? found : ''))
    .replaceAll(/<(?=[\p{L}/!?|_])/gu, '&lt;');
}

function escapeMarkup(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
