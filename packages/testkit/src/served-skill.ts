import { createHash } from 'node:crypto';

import type { Json } from '@patchbay/protocols';

import { SKILL_FAULTS, type SkillMisbehaviour } from './skill-misbehaviour.ts';

/** A skill of a skills server. */
export interface ServedSkill {
  readonly name: string;
  /** Default: `Use <name>.` */
  readonly description?: string;
  /** Further fields of the frontmatter. */
  readonly frontmatter?: Readonly<Record<string, Json>>;
  /** What follows the frontmatter in SKILL.md. */
  readonly body?: string;
  /** What is beside SKILL.md, by its path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Skills in folders of their own below this one: their files are files of this one too. */
  readonly nested?: readonly ServedSkill[];
  /** The address of its folder, which ends with its name. Default: `skill://<name>`. Not for nested ones. */
  readonly folder?: string;
  /** `false`: it is there for who knows its address, but in no list. */
  readonly listed?: boolean;
  /** Its files are made when they are asked for: the entry has no digests. */
  readonly dynamic?: boolean;
  readonly misbehaviour?: SkillMisbehaviour;
}

/** A file in the entry of a skill. */
export interface ServedFile {
  readonly uri: string;
  readonly digest: string;
  readonly size: number;
}

/** What `resources/read` answers for one file. */
export type Contents =
  | { readonly uri: string; readonly mimeType: string; readonly text: string }
  | { readonly uri: string; readonly mimeType: string; readonly blob: string };

/** A skill as it is served, after everything was done to it. */
export interface PublishedSkill {
  readonly name: string;
  readonly description: string;
  /** Of its SKILL.md. */
  readonly uri: string;
  readonly root: string;
  readonly listed: boolean;
  readonly files: ReadonlyMap<string, string | Uint8Array>;
  /** In `skills/list`; none, one, or more if that is what is wrong with it. */
  readonly entries: readonly object[];
  /** In `skills/get`; `undefined`: there is no such skill. */
  readonly entry: object | undefined;
  /** The answer to the `times`th read of one of its files; `undefined`: there is no such file; a promise may never end. */
  readonly read: (uri: string, times: number) => Contents | Promise<never> | undefined;
}

/**
 * The skills as they are served: itself, and the nested ones.
 * @throws Error if the folder does not end with the name
 */
export function publish(skill: ServedSkill): readonly PublishedSkill[] {
  const { name, folder = `skill://${name}`, nested = [], misbehaviour } = skill;
  if (!folder.endsWith(`/${name}`)) {
    throw new Error(`The folder of the skill "${name}" must end with its name, not be ${folder}.`);
  }
  const inner = nested.flatMap((each) => publish({ ...each, folder: `${folder}/${each.name}` }));
  const { description = `Use ${name}.`, body = '', listed = true } = skill;
  const frontmatter = { name, description, ...skill.frontmatter };
  const uri = `${folder}/SKILL.md`;
  const files = new Map<string, string | Uint8Array>([[uri, manifestOf(frontmatter, body)]]);
  for (const [path, content] of Object.entries(skill.files ?? {})) {
    files.set(`${folder}/${path.split('/').map(encodeURIComponent).join('/')}`, content);
  }
  for (const each of inner) for (const [at, content] of each.files) files.set(at, content);
  const resources = [...files].map(([at, content]) => fileOf(at, content));
  const fault = misbehaviour === undefined ? undefined : SKILL_FAULTS[misbehaviour];
  const honest = { uri, root: folder, frontmatter, resources, files };
  const faulty = { ...honest, ...fault?.(honest) };
  const entry = {
    uri: faulty.uri,
    frontmatter: faulty.frontmatter,
    resources: skill.dynamic === true ? 'dynamic' : faulty.resources,
  };
  const published: PublishedSkill = {
    name,
    description,
    uri,
    root: folder,
    listed,
    files: faulty.files,
    entries: listed ? Array.from({ length: faulty.copies ?? 1 }, () => entry) : [],
    entry: 'onGet' in faulty ? faulty.onGet : entry,
    read: faulty.read ?? ((at) => contentsOf(at, faulty.files.get(at))),
  };
  return [published, ...inner];
}

/** What is said of a file in an entry. */
export function fileOf(uri: string, content: string | Uint8Array): ServedFile {
  const bytes = Buffer.from(content);
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  return { uri, digest, size: bytes.length };
}

/** A file as an answer. */
export function contentsOf(
  uri: string,
  content: string | Uint8Array | undefined,
): Contents | undefined {
  if (content === undefined) return undefined;
  if (typeof content !== 'string') {
    const blob = Buffer.from(content).toString('base64');
    return { uri, mimeType: 'application/octet-stream', blob };
  }
  return { uri, mimeType: uri.endsWith('.md') ? 'text/markdown' : 'text/plain', text: content };
}

/** JSON is YAML, so each field is written as JSON. */
function manifestOf(frontmatter: Readonly<Record<string, Json>>, body: string): string {
  const fields = Object.entries(frontmatter).map(
    ([key, value]) => `${key}: ${JSON.stringify(value)}\n`,
  );
  return `---\n${fields.join('')}---\n${body}`;
}
