import {
  PatchbayError,
  sha256Hex,
  type Capability,
  type ContentPart,
  type OpenSkill,
  type SkillEntry,
  type SkillResource,
} from '@patchbay/protocols';

/** A skill that a program makes itself. */
export interface MemorySkill {
  readonly name: string;
  /** What it does, and when to use it. */
  readonly description: string;
  /** What the model is to do, in Markdown. */
  readonly body: string;
  /** Its files, by path within the skill. */
  readonly files?: Readonly<Record<string, string>>;
  readonly whenToUse?: string;
  /** In force without being activated. Default false. */
  readonly alwaysActive?: boolean;
  /** Default true: in the catalogue. */
  readonly modelInvocable?: boolean;
  /** Default true: a slash command. */
  readonly userInvocable?: boolean;
  readonly disallowedTools?: readonly string[];
}

export interface MemorySkillsOptions {
  /** The capability id. */
  readonly id: string;
  readonly skills: readonly MemorySkill[];
  /** Among several skills of one name the greatest is shown. Default 30, as for the skills of a project. */
  readonly precedence?: number;
}

/** Skills that lie in no folder. They do not change: register other ones in place of them. */
export function memorySkills({
  id,
  skills,
  precedence = 30,
}: MemorySkillsOptions): Capability & SkillResource {
  const known = new Map<string, OpenSkill>();
  for (const skill of skills) {
    const open = openSkillOf(skill, id, precedence);
    if (known.has(open.entry.uri)) {
      const message = `There are two skills "${skill.name}" in "${id}". Rename one of them.`;
      throw new PatchbayError('duplicate-id', message, { source: id });
    }
    known.set(open.entry.uri, open);
  }
  const entries = Object.freeze([...known.values()].map(({ entry }) => entry));
  return {
    id,
    listSkills: async () => entries,
    openSkill: async (uri) => known.get(uri),
    skillExists: async (uri) => known.has(uri),
  };
}

function openSkillOf(skill: MemorySkill, source: string, precedence: number): OpenSkill {
  const { body, files = {}, ...metadata } = skill;
  for (const key of ['name', 'description'] as const) {
    if (typeof skill[key] !== 'string' || skill[key].trim() === '')
      throw new PatchbayError('invalid-config', `A skill of "${source}" has no ${key}.`, {
        source,
      });
  }
  const digest = `sha256:${sha256Hex(JSON.stringify([metadata, body, files]))}`;
  const entry: SkillEntry = Object.freeze({
    ...metadata,
    uri: `skill://${encodeURIComponent(skill.name)}/SKILL.md`,
    origin: `program:${source}`,
    precedence,
    mimeType: 'text/markdown',
    digest,
  });
  const texts = new Map([['SKILL.md', body], ...Object.entries(files)]);
  return Object.freeze({
    entry,
    body,
    digest,
    files: Object.keys(files)
      .toSorted()
      .map((path) => ({ path })),
    readFile: async (path: string): Promise<readonly ContentPart[]> => {
      const text = texts.get(path);
      if (text === undefined)
        throw new PatchbayError('not-found', `There is no file ${JSON.stringify(path)} here.`, {
          source,
        });
      return [{ type: 'text', text }];
    },
  });
}
