import type { OpenSkill } from '@patchbay/protocols';

import { escapeMarkup } from './catalogue.ts';

/** The body of a skill as it enters a conversation: its folder stands where the author wrote a placeholder for it. */
function skillBody({ body, folder }: OpenSkill): string {
  if (folder === undefined) return body;
  return body.replaceAll(/\$\{CLAUDE_SKILL_DIR\}|\{baseDir\}/g, () => folder);
}

/** The body with what a model needs to work with it: where the skill lies, and which files it has. */
export function skillContent(name: string, skill: OpenSkill): string {
  const files = skill.files === 'dynamic' ? [] : skill.files;
  const about = [
    ...(skill.folder === undefined ? [] : [`Folder: ${skill.folder}`]),
    ...(files.length === 0
      ? []
      : [`Files (read them with read_skill_file): ${files.map(({ path }) => path).join(', ')}`]),
  ];
  const head = about.length === 0 ? '' : `${about.join('\n')}\n\n`;
  return `<skill_content name="${escapeMarkup(name)}">\n${head}${skillBody(skill)}\n</skill_content>`;
}

/**
 * The body of a skill that was called as a command: `$ARGUMENTS` stands for what was typed, and where it does not occur the
 * arguments follow. One pass over the body: what was typed is text, and is not looked at again.
 */
export function skillCommandText(skill: OpenSkill, typed: string): string {
  const body = skillBody(skill);
  if (body.includes('$ARGUMENTS')) return body.replaceAll('$ARGUMENTS', () => typed);
  return typed === '' ? body : `${body}\n\nARGUMENTS: ${typed}`;
}
