import { access } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import type { CommandDialect } from '@patchbay/commands';
import { defaultSkillFolders } from '@patchbay/skills/node';

/** Where the tools of the field keep commands, and how their placeholders are meant. */
const COMMAND_FOLDERS: readonly (readonly [string, CommandDialect])[] = [
  ['.agents/commands', 'patchbay'],
  ['.claude/commands', 'claude'],
  ['.opencode/commands', 'opencode'],
  ['.opencode/command', 'opencode'],
  ['.cursor/commands', 'cursor'],
];
const USER_COMMAND_FOLDERS: readonly (readonly [string, CommandDialect])[] = [
  ['.claude/commands', 'claude'],
  ['.config/opencode/commands', 'opencode'],
  ['.config/opencode/command', 'opencode'],
  ['.codex/prompts', 'codex'],
];

export interface CommandFolder {
  readonly folder: string;
  readonly dialect: CommandDialect;
}

/** Folders that may be there. Of the project: from the working directory up to the root of its repository, nearest first. */
export interface DefaultFolders {
  readonly skills: { readonly project: readonly string[]; readonly user: readonly string[] };
  readonly commands: {
    readonly project: readonly CommandFolder[];
    readonly user: readonly CommandFolder[];
  };
}

export async function defaultFolders(cwd: string, home: string | false): Promise<DefaultFolders> {
  const bases = await upToRepository(cwd);
  return {
    skills: await defaultSkillFolders({ cwd, home }),
    commands: {
      project: bases.flatMap((base) => commandFolders(base, COMMAND_FOLDERS)),
      user: home === false ? [] : commandFolders(home, USER_COMMAND_FOLDERS),
    },
  };
}

function commandFolders(
  base: string,
  folders: readonly (readonly [string, CommandDialect])[],
): readonly CommandFolder[] {
  return folders.map(([folder, dialect]) => ({ folder: join(base, folder), dialect }));
}

async function upToRepository(cwd: string): Promise<readonly string[]> {
  const bases: string[] = [];
  for (let at = cwd; ; at = dirname(at)) {
    bases.push(at);
    const found = await access(join(at, '.git')).then(
      () => true,
      () => false,
    );
    if (found) return bases;
    if (dirname(at) === at) return [cwd];
  }
}
