import type { Contents, PublishedSkill, ServedFile } from './served-skill.ts';
import { contentsOf, fileOf } from './served-skill.ts';
import type { ScriptedExtension, ScriptedMethod } from './scripted-session.ts';
import { RpcError } from './scripted-tool.ts';

/** How servers have told which skills they have. */
export type SkillsGeneration =
  /** The Skills extension, `io.modelcontextprotocol/skills` (SEP-2640), as it was accepted. */
  | 'final'
  /** The same in an early draft: files without sizes, answers without cache hints. */
  | 'draft'
  /** No extension: each SKILL.md is in the list of resources, with a `_manifest` of its files beside it. */
  | 'resources'
  /** No extension: `skill://index.json` is a resource, and names each SKILL.md. */
  | 'index';

/** What is wrong with the list of skills. */
export type SkillsMisbehaviour =
  /** It fails. */
  | 'listing-fails'
  /** It never ends: each page of 200 skills names a next one. */
  | 'endless-listing'
  /** Its methods work, but it does not declare the extension: no client should ask. */
  | 'undeclared'
  /** A modern server that does not say how long its list is good for. */
  | 'no-cache-hints';

/** What decides how skills are told. */
interface Options {
  readonly era?: 'legacy' | 'modern';
  readonly generation?: SkillsGeneration;
  readonly directoryRead?: boolean;
  readonly pageSize?: number;
  readonly misbehaviour?: SkillsMisbehaviour;
}

/** A way to tell which skills there are, and what they say. */
export interface Generation extends ScriptedExtension {
  /** Answers the `times`th read of this address. */
  readonly read: (uri: string, times: number) => Promise<object>;
}

type Skills = () => readonly PublishedSkill[];
type Hints = Readonly<Record<string, unknown>>;

const EXTENSION = 'io.modelcontextprotocol/skills';
const INDEX = 'skill://index.json';
const INVALID = -32602;
const INTERNAL = -32603;
const ENDLESS_PAGE = 200;

/** The methods of a skills server; `skills` is what it has at the moment. */
export function generationOf(options: Options, skills: Skills): Generation {
  const { generation = 'final', era, misbehaviour } = options;
  const isModern = era === 'modern';
  const hints = isModern ? { ttlMs: 0, cacheScope: 'private' } : {};
  const ofSkills = misbehaviour === 'no-cache-hints' ? {} : hints;
  switch (generation) {
    case 'final':
      return extension(options, skills, { list: ofSkills, get: ofSkills, other: hints });
    case 'draft': {
      const list = isModern ? { ttlMs: 10_800_000, cacheScope: 'public' } : {};
      const drafted = () => skills().map(asDrafted);
      return extension(options, drafted, { list, get: {}, other: hints });
    }
    case 'resources':
      return asResources(skills, hints);
    default:
      return asIndex(skills, hints);
  }
}

function extension(
  { directoryRead = false, pageSize = Infinity, misbehaviour }: Options,
  skills: Skills,
  hints: { readonly list: Hints; readonly get: Hints; readonly other: Hints },
): Generation {
  const declared = { [EXTENSION]: directoryRead ? { directoryRead } : {} };
  const list: ScriptedMethod = ({ cursor }) => {
    if (misbehaviour === 'listing-fails') throw new RpcError(INTERNAL, 'The list is broken.');
    const from = Number(cursor ?? 0);
    if (misbehaviour === 'endless-listing') {
      const made = Array.from({ length: ENDLESS_PAGE }, (_, n) => madeUp(from + n));
      return { skills: made, nextCursor: String(from + ENDLESS_PAGE), ...hints.list };
    }
    const all = skills().flatMap(({ entries }) => entries);
    const to = from + pageSize;
    const next = to < all.length ? { nextCursor: String(to) } : {};
    return { skills: all.slice(from, to), ...next, ...hints.list };
  };
  const get: ScriptedMethod = ({ uri }) => {
    const entry = skills().find((skill) => skill.uri === uri)?.entry;
    if (entry === undefined) throw new RpcError(INVALID, 'There is no such skill.');
    return { skill: entry, ...hints.get };
  };
  const directory: ScriptedMethod = ({ uri }) => ({
    resources: childrenOf(String(uri), skills()),
    ...hints.other,
  });
  return {
    capabilities: {
      resources: { listChanged: true },
      ...(misbehaviour === 'undeclared' ? {} : { extensions: declared }),
    },
    methods: new Map([
      ['skills/list', list],
      ['skills/get', get],
      ...(directoryRead ? [['resources/directory/read', directory] as const] : []),
      ...resourceMethods(
        () => skills().filter(isListed).map(manifestEntry),
        () => [{ name: 'skill', uriTemplate: 'skill://{+path}' }],
        hints.other,
      ),
    ]),
    read: (uri, times) => answered(readIn(skills(), uri, times), hints.other),
  };
}

/** As it was in an early draft. */
const asDrafted = (skill: PublishedSkill): PublishedSkill => ({
  ...skill,
  entries: skill.entries.map(withoutSizes),
  entry: skill.entry === undefined ? undefined : withoutSizes(skill.entry),
});

function withoutSizes(entry: object): object {
  const { resources, ...rest } = entry as { readonly resources?: unknown };
  if (!Array.isArray(resources)) return entry;
  return {
    ...rest,
    resources: (resources as ServedFile[]).map((file) => ({ ...file, size: undefined })),
  };
}

function asResources(skills: Skills, hints: Hints): Generation {
  const listed = () => skills().filter(isListed);
  const manifest = ({ name, root, files }: PublishedSkill) => {
    const described = [...files].map(([uri, content]) => {
      const { digest, size } = fileOf(uri, content);
      return { path: decodeURIComponent(uri.slice(root.length + 1)), size, hash: digest };
    });
    return JSON.stringify({ skill: name, files: described });
  };
  return {
    capabilities: { resources: { listChanged: true } },
    methods: new Map(
      resourceMethods(
        () =>
          listed().flatMap((skill) => [
            manifestEntry(skill),
            {
              uri: `${skill.root}/_manifest`,
              name: `${skill.name}/_manifest`,
              mimeType: JSON_TYPE,
            },
          ]),
        () => listed().map(({ name, root }) => ({ name, uriTemplate: `${root}/{+path}` })),
        hints,
      ),
    ),
    read: (uri, times) => {
      const skill = skills().find(({ root }) => uri === `${root}/_manifest`);
      const found =
        skill === undefined
          ? readIn(skills(), uri, times)
          : { uri, mimeType: JSON_TYPE, text: manifest(skill) };
      return answered(found, hints);
    },
  };
}

function asIndex(skills: Skills, hints: Hints): Generation {
  const index = () => {
    const entries = skills()
      .filter(isListed)
      .map(({ name, description, uri }) => ({ name, type: 'skill-md', description, url: uri }));
    return { uri: INDEX, mimeType: JSON_TYPE, text: JSON.stringify({ skills: entries }) };
  };
  return {
    capabilities: { resources: { listChanged: true } },
    methods: new Map(
      resourceMethods(
        () => [{ uri: INDEX, name: 'index.json', mimeType: JSON_TYPE }],
        () => [],
        hints,
      ),
    ),
    read: (uri, times) => answered(uri === INDEX ? index() : readIn(skills(), uri, times), hints),
  };
}

const JSON_TYPE = 'application/json';

const isListed = ({ listed }: PublishedSkill): boolean => listed;

const manifestEntry = ({ uri, name, description }: PublishedSkill): object => ({
  uri,
  name,
  description,
  mimeType: 'text/markdown',
});

const resourceMethods = (
  resources: () => readonly object[],
  resourceTemplates: () => readonly object[],
  hints: Hints,
): readonly (readonly [string, ScriptedMethod])[] => [
  ['resources/list', () => ({ resources: resources(), ...hints })],
  ['resources/templates/list', () => ({ resourceTemplates: resourceTemplates(), ...hints })],
];

/** A file of a nested skill belongs to the ones around it too: the innermost decides what a read gives. */
function readIn(
  skills: readonly PublishedSkill[],
  uri: string,
  times: number,
): Contents | Promise<never> | undefined {
  const having = skills.filter(({ files }) => files.has(uri));
  const [innermost] = having.toSorted((a, b) => b.root.length - a.root.length);
  return innermost?.read(uri, times);
}

async function answered(
  found: Contents | Promise<never> | undefined,
  hints: Hints,
): Promise<object> {
  const contents = await found;
  if (contents === undefined) throw new RpcError(INVALID, 'There is no such resource.');
  return { contents: [contents], ...hints };
}

/** What is in a folder, also what no entry names. */
function childrenOf(folder: string, skills: readonly PublishedSkill[]): readonly object[] {
  const children = new Map<string, object>();
  for (const uri of skills.flatMap(({ files }) => [...files.keys()])) {
    if (!uri.startsWith(`${folder}/`)) continue;
    const [name = '', ...below] = uri.slice(folder.length + 1).split('/');
    const child = `${folder}/${name}`;
    const mimeType = below.length > 0 ? 'inode/directory' : contentsOf(uri, '')?.mimeType;
    children.set(child, { uri: child, name: decodeURIComponent(name), mimeType });
  }
  if (children.size === 0) throw new RpcError(INVALID, 'There is no such folder.');
  return [...children.values()];
}

function madeUp(n: number): object {
  const uri = `skill://endless-${n}/SKILL.md`;
  const frontmatter = { name: `endless-${n}`, description: 'One of many.' };
  return { uri, frontmatter, resources: [fileOf(uri, '')] };
}
