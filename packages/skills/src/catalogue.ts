import type { NamedSkill } from './named-skills.ts';

const INTRODUCTION =
  'Skills hold instructions for particular tasks. Before you do a task that one of them describes, ' +
  'call activate_skill with its name and follow what it says.';

/** The catalogue for the system prompt: metadata only, the same text for the same skills. Nothing without skills. */
export function catalogueText(skills: readonly NamedSkill[]): string | undefined {
  if (skills.length === 0) return undefined;
  const items = skills.map(({ name, skill: { entry } }) => {
    const description = [entry.description, entry.whenToUse]
      .filter((text) => text !== undefined)
      .join(' ');
    return `<skill><name>${inline(name)}</name><description>${inline(description)}</description><origin>${inline(entry.origin)}</origin></skill>`;
  });
  return `${INTRODUCTION}\n<available_skills>\n${items.join('\n')}\n</available_skills>`;
}

/** One line of text that cannot break out of the markup around it, without characters that cannot be seen. */
function inline(text: string): string {
  return escapeMarkup(text.replaceAll(INVISIBLE, '').replaceAll(/\s+/g, ' ').trim());
}

/** Zero-width, direction and tag characters: they hide text from people, not from models. */
const INVISIBLE = /[\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu;

export function escapeMarkup(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
