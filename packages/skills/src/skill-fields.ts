import { booleanField, field, listField, textField, type FrontmatterData } from '@patchbay/files';
import type { SkillEntry } from '@patchbay/protocols';

import { readServers, type ServerFields, type ServersFile } from './skill-servers.ts';

/** Letters of any script, lower case where there is a case, digits, single hyphens inside. (Agent Skills, reference validator) */
const NAME = /^(?!.*--)[\p{Ll}\p{Lo}\p{Nd}](?:[\p{Ll}\p{Lo}\p{Nd}-]*[\p{Ll}\p{Lo}\p{Nd}])?$/u;
const MAX_NAME = 64;
const MAX_DESCRIPTION = 1024;

/** Notes that something is not as the specification says. */
export type Warn = (code: string, what: string) => void;

/** Its name; without one that of its folder. Whatever it is, it is loaded. */
export function nameOf(data: FrontmatterData, folder: string, warn: Warn): string | undefined {
  const name = textField(data, 'name')?.normalize('NFKC').replaceAll(/\s+/g, ' ');
  if (name === undefined) {
    if (folder === '') return undefined;
    warn(
      'name-missing',
      `has no name; the name of its folder, "${folder}", stands in for it. Add \`name: ${folder}\``,
    );
    return folder;
  }
  if (isLonger(name, MAX_NAME))
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

/** In characters, of which none has less than one unit. */
const isLonger = (text: string, most: number): boolean =>
  text.length > most && Array.from(text).length > most;

/** Its description; without one the first paragraph. */
export function descriptionOf(data: FrontmatterData, body: string, warn: Warn): string | undefined {
  const description = textField(data, 'description');
  if (description !== undefined) {
    if (isLonger(description, MAX_DESCRIPTION)) {
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

/** Whether it is in force without being activated: its author says so, and may. */
export function isAlwaysActive(data: FrontmatterData, trusted: boolean, warn: Warn): boolean {
  const ours = patchbayFields(data);
  const own = ours && booleanField(ours, 'always_active');
  const wanted = own ?? booleanField(data, 'always_active') ?? false;
  if (wanted && !trusted) {
    warn(
      'always-active-refused',
      'wants to be always active, which only skills of trusted sources may; it is an ordinary one. Set `trusted` on its source if it may',
    );
  }
  return wanted && trusted;
}

/** The servers that it brings, where its author may. */
export function trustedServers(
  written: ServerFields,
  file: ServersFile,
  trusted: boolean,
  warn: Warn,
): SkillEntry['servers'] {
  const servers = readServers(written, file, warn);
  if (servers === undefined || trusted) return servers;
  warn(
    'servers-refused',
    `brings MCP servers (${Object.keys(servers).join(', ')}), which only skills of trusted sources may. Set \`trusted\` on its source if it may`,
  );
  return undefined;
}

/** When to use it. */
export const whenToUseOf = (data: FrontmatterData): string | undefined =>
  textField(data, 'when_to_use');

/**
 * Three fields, three meanings: the one with `_` narrows the tools of servers that the skill itself brings. Notes a form of
 * `allowed-tools` that says nothing.
 */
export function toolLists(
  data: FrontmatterData,
  warn: Warn,
): Pick<SkillEntry, 'preApprovedTools' | 'embeddedTools' | 'disallowedTools'> {
  const written = field(specifiedFields(data), 'allowed-tools');
  const fine =
    written === undefined ||
    typeof written === 'string' ||
    (Array.isArray(written) && written.every((v) => typeof v === 'string'));
  if (!fine)
    warn(
      'allowed-tools-form',
      'has `allowed-tools` that is neither text nor a list; nothing is approved by it. Write a list',
    );
  const preApprovedTools = listField({ written }, 'written');
  const embeddedTools = ownList(data, 'allowed_tools');
  const disallowedTools = listField(data, 'disallowed-tools');
  return {
    ...(preApprovedTools === undefined ? {} : { preApprovedTools }),
    ...(embeddedTools === undefined ? {} : { embeddedTools }),
    ...(disallowedTools === undefined ? {} : { disallowedTools }),
  };
}

/** Without our own field, whose name is another way to write one of the specification. */
function specifiedFields(data: FrontmatterData): FrontmatterData {
  if (data['allowed_tools'] === undefined) return data;
  const specified: FrontmatterData = Object.assign(Object.create(null), data);
  delete specified['allowed_tools'];
  return specified;
}

/** A list under one of patchbay's own names, exactly as written, or under `metadata.patchbay`. */
function ownList(data: FrontmatterData, name: string): readonly string[] | undefined {
  if (data[name] !== undefined) return listField({ [name]: data[name] }, name);
  const ours = patchbayFields(data);
  return ours && listField(ours, name);
}

/** `metadata.patchbay.*`: the place for our own fields that the specification allows. */
function patchbayFields(data: FrontmatterData): FrontmatterData | undefined {
  const metadata = data['metadata'];
  if (typeof metadata !== 'object' || Array.isArray(metadata)) return undefined;
  const own = metadata['patchbay'];
  return typeof own === 'object' && !Array.isArray(own) ? own : undefined;
}
