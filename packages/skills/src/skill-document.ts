import {
  booleanField,
  field,
  listField,
  readFrontmatter,
  textField,
  type FrontmatterData,
} from '@patchbay/files';
import type { Problem, SkillEntry } from '@patchbay/protocols';

import { readServers } from './skill-servers.ts';
import { strictFaults } from './strict-validation.ts';

/** A SKILL.md, read. */
export interface SkillDocument {
  readonly entry: SkillEntry;
  readonly body: string;
  /** Its frontmatter has an end: of the head of a file nothing more is needed to know the entry. */
  readonly closed: boolean;
}

export interface DocumentOptions {
  /** The capability that has the problems. */
  readonly source: string;
  /** Shown in problems. */
  readonly file: string;
  /** Name of the folder: stands in for a missing name. */
  readonly folder: string;
  readonly origin: string;
  readonly precedence: number;
  /** Whether the author may decide about the agent: only then is a skill always active because it says so. */
  readonly trusted: boolean;
  /** `strict`: what the specification's validator refuses is refused. */
  readonly validate: 'lenient' | 'strict';
  /** The mcp.json beside it. */
  readonly mcpJson?: string | undefined;
  /** The bytes are the head of a longer file. */
  readonly partial?: boolean;
  /** Of the whole file, where it is known. */
  readonly digest?: string | undefined;
}

/** Letters of any script, lower case where there is a case, digits, single hyphens inside. (Agent Skills, reference validator) */
const NAME = /^(?!.*--)[\p{Ll}\p{Lo}\p{Nd}](?:[\p{Ll}\p{Lo}\p{Nd}-]*[\p{Ll}\p{Lo}\p{Nd}])?$/u;
const MAX_NAME = 64;
const MAX_DESCRIPTION = 1024;

/**
 * Reads a SKILL.md as the field writes it. What is not as the specification says is a problem; the skill works. Refused
 * is only what has neither a name nor anything that could describe it, and what is no text.
 */
export function readSkillDocument(
  bytes: Uint8Array | string,
  options: DocumentOptions,
): SkillDocument | { readonly refused: Problem } {
  const read = readFrontmatter(bytes, options);
  if ('refused' in read) return read;
  const { data, body, headLine } = read;
  const problems = [...read.problems];
  const warn = (code: string, what: string) =>
    problems.push({
      source: options.source,
      code,
      severity: 'warning',
      message: `${options.file}:${headLine} ${what}.`,
      file: options.file,
      line: headLine,
    });

  const name = nameOf(data, options.folder, warn);
  const description = descriptionOf(data, body, warn);
  const refuse = (code: string, what: string) => ({
    refused: {
      source: options.source,
      code,
      severity: 'error' as const,
      message: `${options.file}:1 ${what}`,
      file: options.file,
      line: 1,
    },
  });
  if (options.validate === 'strict') {
    const faults = strictFaults(read, options.folder);
    if (faults.length > 0)
      return refuse('skill-invalid', `is not valid and was left out: ${faults.join('; ')}.`);
  }
  if (name === undefined || description === undefined) {
    return refuse(
      'skill-empty',
      'has nothing that says what it is for, and was left out. Give it a name and a description.',
    );
  }
  // Three fields, three meanings: the one with `_` narrows the tools of servers that the skill itself brings.
  const specified: FrontmatterData = Object.assign(Object.create(null), data);
  delete specified['allowed_tools'];
  checkTools(specified, warn);
  const lists = {
    preApprovedTools: listField(specified, 'allowed-tools'),
    embeddedTools: ownList(data, 'allowed_tools'),
    disallowedTools: listField(data, 'disallowed-tools'),
  };
  const whenToUse = textField(data, 'when_to_use');
  const modelInvocable = booleanField(data, 'disable-model-invocation') !== true;
  const userInvocable = booleanField(data, 'user-invocable') !== false;
  const alwaysActive = isAlwaysActive(data, options.trusted, warn);
  const servers = trustedServers(data, options, warn);
  const entry: SkillEntry = {
    uri: `skill://${encodeURIComponent(name)}/SKILL.md`,
    name,
    description,
    origin: options.origin,
    precedence: options.precedence,
    mimeType: 'text/markdown',
    frontmatter: data,
    modelInvocable,
    userInvocable,
    ...(alwaysActive ? { alwaysActive } : {}),
    ...(whenToUse === undefined ? {} : { whenToUse }),
    ...(lists.preApprovedTools === undefined ? {} : { preApprovedTools: lists.preApprovedTools }),
    ...(lists.embeddedTools === undefined ? {} : { embeddedTools: lists.embeddedTools }),
    ...(lists.disallowedTools === undefined ? {} : { disallowedTools: lists.disallowedTools }),
    ...(servers === undefined ? {} : { servers }),
    ...(options.digest === undefined ? {} : { digest: options.digest }),
    ...(problems.length === 0 ? {} : { problems }),
  };
  return {
    entry: Object.freeze(entry),
    body: body.replace(/^\n+/, '').trimEnd(),
    closed:
      read.hasFrontmatter && !read.problems.some(({ code }) => code === 'unclosed-frontmatter'),
  };
}

type Warn = (code: string, what: string) => void;

function nameOf(data: FrontmatterData, folder: string, warn: Warn): string | undefined {
  const name = textField(data, 'name')?.normalize('NFKC');
  if (name === undefined) {
    if (folder === '') return undefined;
    warn(
      'name-missing',
      `has no name; the name of its folder, "${folder}", stands in for it. Add \`name: ${folder}\``,
    );
    return folder;
  }
  if (Array.from(name).length > MAX_NAME)
    warn('name-too-long', `has a name of more than ${MAX_NAME} characters. Shorten it`);
  if (!NAME.test(name))
    warn(
      'name-pattern',
      `has the name "${name}", which is not made of lower-case letters, digits and single hyphens. Rename it`,
    );
  if (folder !== '' && name !== folder.normalize('NFKC')) {
    warn(
      'name-not-folder',
      `has the name "${name}" but lies in a folder "${folder}". Give both the same name`,
    );
  }
  return name;
}

function descriptionOf(data: FrontmatterData, body: string, warn: Warn): string | undefined {
  const description = textField(data, 'description');
  if (description !== undefined) {
    if (Array.from(description).length > MAX_DESCRIPTION) {
      warn(
        'description-too-long',
        `has a description of more than ${MAX_DESCRIPTION} characters. Shorten it`,
      );
    }
    return description;
  }
  const paragraph = /^(?!#|\s*$|---|```|<|\|)(.+)$/m.exec(body)?.[1]?.trim();
  if (paragraph !== undefined)
    warn(
      'description-missing',
      'has no description; its first paragraph stands in for it. Add one',
    );
  return paragraph;
}

function isAlwaysActive(data: FrontmatterData, trusted: boolean, warn: Warn): boolean {
  const own = booleanField(patchbayFields(data), 'always_active');
  const wanted = own ?? booleanField(data, 'always_active') ?? false;
  if (wanted && !trusted) {
    warn(
      'always-active-refused',
      'wants to be always active, which only skills of trusted sources may; it is an ordinary one. Set `trusted` on its source if it may',
    );
  }
  return wanted && trusted;
}

function trustedServers(
  data: FrontmatterData,
  { mcpJson, trusted }: DocumentOptions,
  warn: Warn,
): SkillEntry['servers'] {
  const servers = readServers(data, mcpJson, warn);
  if (servers === undefined || trusted) return servers;
  warn(
    'servers-refused',
    `brings MCP servers (${Object.keys(servers).join(', ')}), which only skills of trusted sources may. Set \`trusted\` on its source if it may`,
  );
  return undefined;
}

function checkTools(data: FrontmatterData, warn: Warn): void {
  const value = field(data, 'allowed-tools');
  const fine =
    value === undefined ||
    typeof value === 'string' ||
    (Array.isArray(value) && value.every((v) => typeof v === 'string'));
  if (!fine)
    warn(
      'allowed-tools-form',
      'has `allowed-tools` that is neither text nor a list; nothing is approved by it. Write a list',
    );
}

function ownList(data: FrontmatterData, name: string): readonly string[] | undefined {
  if (data[name] !== undefined) return listField({ [name]: data[name] }, name);
  return listField(patchbayFields(data), name);
}

/** `metadata.patchbay.*`: the place for our own fields that the specification allows. */
function patchbayFields(data: FrontmatterData): FrontmatterData {
  const metadata = data['metadata'];
  if (typeof metadata !== 'object' || Array.isArray(metadata)) return {};
  const own = metadata['patchbay'];
  return typeof own === 'object' && !Array.isArray(own) ? own : {};
}
