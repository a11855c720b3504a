import { defaultCommandFolders, type DefaultCommandFolders } from '@patchbay/commands';
import { defaultSkillFolders } from '@patchbay/skills/node';

export type { CommandFolder } from '@patchbay/commands';

/** Folders that may be there. Of the project: from the working directory up to the root of its repository, nearest first. */
export interface DefaultFolders {
  readonly skills: { readonly project: readonly string[]; readonly user: readonly string[] };
  readonly commands: DefaultCommandFolders;
}

export async function defaultFolders(cwd: string, home: string | false): Promise<DefaultFolders> {
  const [skills, commands] = await Promise.all([
    defaultSkillFolders({ cwd, home }),
    defaultCommandFolders({ cwd, home }),
  ]);
  return { skills, commands };
}
