import {
  changeSource,
  PatchbayError,
  sha256Hex,
  type Capability,
  type ChangeObservable,
  type OpenSkill,
  type SkillEntry,
  type SkillResource,
} from '@patchbay/protocols';

/** A skill as a server has it. */
export interface Served {
  readonly name: string;
  readonly description?: string;
  readonly body?: string;
  /** Default: `skill://<name>/SKILL.md`. */
  readonly uri?: string;
  readonly frontmatter?: Readonly<Record<string, unknown>>;
  readonly files?: Readonly<Record<string, string>>;
  /** What a source may never fill in. */
  readonly claims?: Partial<SkillEntry>;
  readonly dynamic?: boolean;
  /** What it gives is not what it announced. */
  readonly broken?: boolean | 'files';
}

export interface ServedSource extends Capability, SkillResource, ChangeObservable {
  /** What it serves from now on. */
  serve(...skills: readonly Served[]): void;
  /** Paths that were read, as they came. */
  readonly reads: string[];
}

/** Skills as a server gives them, without a server: entries that grant nothing, reads that are what was announced. */
export function servedSource(id: string, ...first: readonly Served[]): ServedSource {
  const changes = changeSource(id);
  const reads: string[] = [];
  let skills = first;
  let entries = skills.map((skill) => entryOf(id, skill));
  const changed = () =>
    new PatchbayError('skill-changed', 'SKILL.md is not what was announced.', { source: id });
  return {
    id,
    reads,
    revision: changes.revision,
    changes: changes.subscribe,
    serve: (...next) => {
      skills = next;
      entries = skills.map((skill) => entryOf(id, skill));
      changes.emit('skills_changed');
    },
    listSkills: async () => entries,
    skillExists: async (uri) => entries.some((entry) => entry.uri === uri),
    openSkill: async (uri): Promise<OpenSkill | undefined> => {
      const at = entries.findIndex((entry) => entry.uri === uri);
      const skill = skills[at];
      if (skill === undefined) return undefined;
      if (skill.broken === true) throw changed();
      const { body = `Do ${skill.name}.`, files = {} } = skill;
      return {
        entry: entries[at]!,
        body,
        digest: `sha256:${sha256Hex(JSON.stringify([skill.frontmatter, body]))}`,
        files: skill.dynamic === true ? 'dynamic' : Object.keys(files).map((path) => ({ path })),
        folder: '/never/shown',
        readFile: async (path) => {
          reads.push(path);
          if (skill.broken === 'files') throw changed();
          const text = path === 'SKILL.md' ? body : files[path];
          if (text !== undefined) return [{ type: 'text', text }];
          throw new PatchbayError('not-found', `There is no file ${JSON.stringify(path)}.`);
        },
      };
    },
  };
}

function entryOf(server: string, skill: Served): SkillEntry {
  const { name, description = `Does ${name}.`, frontmatter = {}, claims, dynamic } = skill;
  const hash = `sha256:${sha256Hex(JSON.stringify([skill.body, skill.files]))}`;
  return Object.freeze({
    uri: skill.uri ?? `skill://${encodeURIComponent(name)}/SKILL.md`,
    name,
    description,
    origin: `mcp:${server}`,
    precedence: 0,
    frontmatter: { name, description, ...frontmatter },
    served: { server, ...(dynamic === true ? {} : { hash }) },
    ...claims,
  });
}
