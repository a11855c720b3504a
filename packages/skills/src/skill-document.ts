import { booleanField, readFrontmatter } from '@patchbay/files';
import type { Problem, SkillEntry } from '@patchbay/protocols';

import {
  descriptionOf,
  isAlwaysActive,
  nameOf,
  toolLists,
  trustedServers,
  whenToUseOf,
  type Warn,
} from './skill-fields.ts';
import { neededServers, serverFields, type ServersFile } from './skill-servers.ts';
import { strictFaults } from './strict-validation.ts';

/** A SKILL.md, read. */
export interface SkillDocument {
  readonly entry: SkillEntry;
  readonly body: string;
  /** Its frontmatter has an end: of the head of a file nothing more is needed to know the entry. */
  readonly closed: boolean;
}

export interface DocumentOptions extends ServersFile {
  /** The capability that has the problems. */
  readonly source: string;
  /** Shown in problems. */
  readonly file: string;
  /** Name of the folder: stands in for a missing name. */
  readonly folder: string;
  readonly origin: string;
  readonly precedence: number;
  /** Whether the author may decide about the agent: only then is a skill always active because it says so. */
  readonly trusted: boolean | 'ask';
  /** `strict`: what the specification's validator refuses is refused. */
  readonly validate: 'lenient' | 'strict';
  /** The bytes are the head of a longer file. */
  readonly partial?: boolean;
  /** Of the whole file, where it is known. */
  readonly digest?: string | undefined;
}

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
  const warn: Warn = (code, what) =>
    void problems.push({
      source: options.source,
      code,
      severity: 'warning',
      message: `${options.file}:${headLine} ${what.replaceAll(/\s+/g, ' ')}.`,
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
  const lists = toolLists(data, warn);
  const whenToUse = whenToUseOf(data);
  const modelInvocable = booleanField(data, 'disable-model-invocation') !== true;
  const userInvocable = booleanField(data, 'user-invocable') !== false;
  const mayAsk = options.trusted !== false;
  const alwaysActive = isAlwaysActive(data, mayAsk, warn);
  const named = serverFields(data);
  const servers = trustedServers(named, options, mayAsk, warn);
  const needed = neededServers(named);
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
    ...lists,
    ...(servers === undefined ? {} : { servers }),
    ...(needed === undefined ? {} : { neededServers: needed }),
    ...(options.digest === undefined ? {} : { digest: options.digest }),
    ...(options.trusted === 'ask' ? { untrusted: true } : {}),
    ...(problems.length === 0 ? {} : { problems }),
  };
  return {
    entry: Object.freeze(entry),
    body: body.replace(/^\n+/, '').trimEnd(),
    closed:
      read.hasFrontmatter && !read.problems.some(({ code }) => code === 'unclosed-frontmatter'),
  };
}
