import { resolve } from 'node:path';

import type { Capability, ChangeObservable, SkillResource } from '@patchbay/protocols';

import { FolderSkills } from './folder-skills.ts';

export interface LocalSkillsOptions {
  /** The capability id. */
  readonly id: string;
  /** One folder or several: of skills, or a skill itself. Relative to the working directory. The first one wins a name. */
  readonly folder: string | readonly string[];
  /** A folder that is not there is no problem: it may come. Default false. */
  readonly optional?: boolean;
  /** Among several skills of one name the greatest is shown. Default 30, as for the skills of a project. */
  readonly precedence?: number;
  /** `false`: what a link leads to outside of the folder is left out, with a problem. Default true. */
  readonly followLinks?: boolean;
  /** Skills in the folder of a skill are skills too. Default false: what is below a skill is its own material. */
  readonly nested?: boolean;
  /**
   * Whether its authors may decide about the agent: a skill be always active, say, or start servers. `ask`: each skill that
   * wants to is asked about, by the `trust` of the SkillManagerCapability. Default true.
   */
  readonly trusted?: boolean | 'ask';
  /** `strict`: what the validator of the specification refuses is left out, with a problem. Default `lenient`. */
  readonly validate?: 'lenient' | 'strict';
  /**
   * While somebody listens to changes the folders are looked at this often, in milliseconds, instead of waiting for events of
   * the file system: for network mounts and Windows drives in WSL, which give none. Default: events.
   */
  readonly poll?: number;
  /** Changes are told when nothing more happened for so long, in milliseconds, or after five times as long. Default 500. */
  readonly debounceMs?: number;
}

/**
 * Skills that lie in folders: registered, they are what agents see. They are watched while somebody listens to changes, and
 * not before; edits are seen at the next compile either way.
 */
export function localSkills(
  options: LocalSkillsOptions,
): Capability & SkillResource & ChangeObservable {
  const { id, folder, optional = false, precedence = 30, followLinks = true } = options;
  const { nested = false, trusted = true, validate = 'lenient', poll, debounceMs } = options;
  const folders = typeof folder === 'string' ? [folder] : folder;
  const roots = folders.map((path) => ({ folder: resolve(path) }));
  return new FolderSkills({
    id,
    optional,
    precedence,
    followLinks,
    nested,
    trusted,
    validate,
    poll,
    debounceMs,
    roots: () => ({ roots, problems: [] }),
  });
}
