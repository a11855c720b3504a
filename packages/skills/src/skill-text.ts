import type { OpenSkill } from '@patchbay/protocols';

import { escapeMarkup } from './catalogue.ts';

/** What was typed behind a skill that is called as a command. */
export interface TypedArguments {
  readonly raw: string;
  readonly positional: readonly string[];
}

/**
 * The body of a skill with its placeholders replaced: `{baseDir}` and `${CLAUDE_SKILL_DIR}` by its folder; and where it was
 * called as a command `$ARGUMENTS` by what was typed, `$ARGUMENTS[0]` by one of it (from 0), `$name` by one that the
 * frontmatter declares (`arguments: [name]`). One pass over the body: what is put in is text, and is not looked at again.
 * `$1` is left alone, because it is a price or a shell's; so is what has no value.
 */
function fill(skill: OpenSkill, typed?: TypedArguments): { text: string; used: boolean } {
  const declared = new Map(
    declaredArguments(skill).map((name, i) => [name, typed?.positional[i]] as const),
  );
  let used = false;
  const text = skill.body.replaceAll(PLACEHOLDER, (whole: string, ...groups: unknown[]) => {
    const [at, name] = groups as [string | undefined, string | undefined];
    if (whole.startsWith('{') || whole.startsWith('${')) return skill.folder ?? whole;
    if (typed === undefined) return whole;
    const value =
      name !== undefined
        ? declared.get(name)
        : at === undefined
          ? typed.raw
          : typed.positional[Number(at)];
    used ||= name === undefined || declared.has(name);
    return value ?? whole;
  });
  return { text, used };
}

const PLACEHOLDER =
  /\{baseDir\}|\$\{CLAUDE_SKILL_DIR\}|\$ARGUMENTS\b(?:\[(\d+)\])?|\$([A-Za-z_]\w*)/g;

/** Names of the arguments that a skill takes as a command. */
export function declaredArguments({ entry }: Pick<OpenSkill, 'entry'>): readonly string[] {
  const written = entry.frontmatter?.['arguments'];
  const names = typeof written === 'string' ? written.split(/[\s,]+/) : written;
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
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
  return `<skill_content name="${escapeMarkup(name)}">\n${head}${fill(skill).text}\n</skill_content>`;
}

/** The body of a skill that was called as a command. Where no placeholder takes what was typed, it follows. */
export function skillCommandText(skill: OpenSkill, typed: TypedArguments): string {
  const { text, used } = fill(skill, typed);
  return used || typed.raw === '' ? text : `${text}\n\nARGUMENTS: ${typed.raw}`;
}
