import { booleanField, type FrontmatterData, type FrontmatterValue } from '@patchbay/files';
import { sha256Hex, type EmbeddedServer, type SkillEntry } from '@patchbay/protocols';

import { clip, oneLine } from './catalogue.ts';
import { isAlwaysActive, toolLists, whenToUseOf } from './skill-fields.ts';
import { readServers, serverFields } from './skill-servers.ts';

/** What a skill asks for beyond being read. */
export interface Asked {
  /** The fields of its entry, if all of it is granted. */
  readonly grants: Partial<SkillEntry>;
  /** For people, one thing each; empty where it asks for nothing. */
  readonly wants: readonly string[];
  /** What an answer is about: its source, its URI, the set of its files, its frontmatter. Absent where that is not fixed. */
  readonly content: string | undefined;
  /** What it takes back of itself: nobody has to agree to that. */
  readonly limits: Pick<SkillEntry, 'modelInvocable' | 'userInvocable'>;
}

const MAX_WANT = 500;
const MAX_DEPTH = 20;

/** What a skill asks for whose author is not trusted, wherever it is from. */
export function askedBy(source: string, entry: SkillEntry): Asked {
  return entry.served === undefined ? askedLocally(entry) : askedByServer(source, entry);
}

/** Its source has read it already. What it takes back of itself, and what it is for, is nobody's to allow. */
function askedLocally({
  name,
  origin,
  alwaysActive,
  preApprovedTools,
  servers,
}: SkillEntry): Asked {
  const grants = {
    ...(alwaysActive === undefined ? {} : { alwaysActive }),
    ...(preApprovedTools === undefined ? {} : { preApprovedTools }),
    ...(servers === undefined ? {} : { servers }),
  };
  return {
    grants,
    wants: wantsOf({ alwaysActive: false, preApprovedTools: [], ...grants }),
    content: `sha256:${sha256Hex(JSON.stringify([name, origin, grants]))}`,
    limits: {},
  };
}

/** By the rules for skills of a folder, without its problems: a server's author does not read them. */
function askedByServer(source: string, entry: SkillEntry): Asked {
  const data = textsIn(entry.frontmatter);
  const quiet = () => undefined;
  const alwaysActive = isAlwaysActive(data, true, quiet);
  const { preApprovedTools = [], disallowedTools = [], embeddedTools } = toolLists(data, quiet);
  const whenToUse = whenToUseOf(data);
  const servers = readServers(serverFields(data), {}, quiet);
  const wants = [
    ...wantsOf({ alwaysActive, preApprovedTools, ...(servers === undefined ? {} : { servers }) }),
    ...(disallowedTools.length === 0 ? [] : [`take tools away: ${disallowedTools.join(', ')}`]),
    ...(whenToUse === undefined ? [] : [`say when it is to be used: ${whenToUse}`]),
  ];
  const hash = entry.served?.hash;
  const about = [source, entry.served?.server, entry.uri, hash, data];
  return {
    wants: wants.map(forPeople),
    content: hash === undefined ? undefined : `sha256:${sha256Hex(JSON.stringify(about))}`,
    limits: {
      ...(booleanField(data, 'disable-model-invocation') === true ? { modelInvocable: false } : {}),
      ...(booleanField(data, 'user-invocable') === false ? { userInvocable: false } : {}),
    },
    grants: {
      ...(alwaysActive ? { alwaysActive } : {}),
      ...(preApprovedTools.length === 0 ? {} : { preApprovedTools }),
      ...(disallowedTools.length === 0 ? {} : { disallowedTools }),
      ...(embeddedTools === undefined ? {} : { embeddedTools }),
      ...(whenToUse === undefined ? {} : { whenToUse }),
      ...(servers === undefined ? {} : { servers }),
    },
  };
}

const forPeople = (want: string): string => clip(oneLine(want), MAX_WANT);

function wantsOf({
  alwaysActive,
  servers = {},
  preApprovedTools,
}: {
  readonly alwaysActive: boolean;
  readonly servers?: SkillEntry['servers'];
  readonly preApprovedTools: readonly string[];
}): readonly string[] {
  return [
    ...(alwaysActive ? ['be active always'] : []),
    ...Object.entries(servers).flatMap(([name, server]) => serverWants(name, server)),
    ...(preApprovedTools.length === 0
      ? []
      : [`have tools approved beforehand: ${preApprovedTools.join(', ')}`]),
  ].map(forPeople);
}

/** Nothing of what it could be granted: what a source filled in by itself does not count. */
export function plainEntry(entry: SkillEntry): SkillEntry {
  if (entry.served === undefined) {
    const { alwaysActive: _, preApprovedTools: _tools, servers: _own, ...plain } = entry;
    return plain;
  }
  const {
    alwaysActive: _always,
    whenToUse: _when,
    preApprovedTools: _approved,
    embeddedTools: _embedded,
    disallowedTools: _disallowed,
    servers: _servers,
    ...plain
  } = entry;
  return { ...plain, precedence: 0 };
}

/** One thing each, as it is written. Of values that may be secret only the names. */
function serverWants(name: string, { config }: EmbeddedServer): readonly string[] {
  if ('url' in config) {
    const { url, headers = {} } = config;
    const sent = Object.keys(headers);
    const also = sent.length === 0 ? '' : ` with the headers ${sent.join(', ')}`;
    const texts = [url, ...Object.values(headers)];
    return [`connect to the server "${name}" at ${url}${also}`, ...given(name, texts)];
  }
  if (!('command' in config)) return [`use the server "${name}"`];
  const { command, args = [], env = {}, cwd } = config;
  const names = Object.keys(env);
  const set = names.length === 0 ? '' : ` with ${names.join(', ')} set`;
  const where = cwd === undefined ? '' : ` in ${cwd}`;
  const texts = [command, ...args, ...Object.values(env), cwd ?? ''];
  const start = `start the server "${name}": ${[command, ...args].join(' ')}${set}${where}`;
  return [start, ...given(name, texts)];
}

/** What whoever makes the server may fill in: `${NAME}`, `${input:id}`. */
function given(name: string, texts: readonly string[]): readonly string[] {
  const found = new Set(texts.flatMap((text) => text.match(/\$\{[^}]*\}/g) ?? []));
  return found.size === 0 ? [] : [`give the server "${name}" ${[...found].join(', ')}`];
}

/** Frontmatter as it is read from files: every scalar is text. In one order, so that the same says the same. */
function textsIn(frontmatter: SkillEntry['frontmatter']): FrontmatterData {
  const value = textual(frontmatter ?? {}, 0);
  return typeof value === 'object' && !Array.isArray(value) ? value : {};
}

function textual(value: unknown, depth: number): FrontmatterValue {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return '';
  if (Array.isArray(value)) return value.map((item) => textual(item, depth + 1));
  const map: Record<string, FrontmatterValue> = Object.create(null);
  for (const [key, item] of Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    map[key] = textual(item, depth + 1);
  return map;
}
