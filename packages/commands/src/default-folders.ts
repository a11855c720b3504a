import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

import { projectFolders } from '@patchbay/files';

import type { CommandDialect } from './dialect.ts';

/** Where each tool keeps its command files: in a project, and below the user's home folder. */
const PLACES: Readonly<
  Record<CommandDialect, { readonly project: readonly string[]; readonly user: readonly string[] }>
> = {
  patchbay: { project: ['.agents/commands'], user: ['.agents/commands'] },
  claude: { project: ['.claude/commands'], user: ['.claude/commands'] },
  opencode: {
    project: ['.opencode/commands', '.opencode/command'],
    user: ['.config/opencode/commands', '.config/opencode/command'],
  },
  cursor: { project: ['.cursor/commands'], user: ['.cursor/commands'] },
  // Its prompts are the user's only.
  codex: { project: [], user: ['.codex/prompts'] },
};

/** A folder that may be there, and whose files are in it. */
export interface CommandFolder {
  readonly folder: string;
  readonly dialect: CommandDialect;
}

export interface DefaultCommandFoldersOptions {
  /** Where the project is. Default: the working directory. */
  readonly cwd?: string;
  /** Default: the home folder. `false`: no folders of the user. */
  readonly home?: string | false;
}

/** Give each to `markdownCommands` with `optional: true`. */
export interface DefaultCommandFolders {
  /** From the working directory up to the root of its repository, the nearest first. */
  readonly project: readonly CommandFolder[];
  readonly user: readonly CommandFolder[];
}

/** Where people keep command files: those of the project, up to the root of its repository, and the user's. */
export async function defaultCommandFolders(
  options: DefaultCommandFoldersOptions = {},
): Promise<DefaultCommandFolders> {
  const { home = homedir() } = options;
  const bases = await projectFolders(resolve(options.cwd ?? '.'));
  const user = home === false ? [] : foldersIn(home, 'user');
  // A home folder that is a repository itself: what is the user's stays the user's.
  const users = new Set(user.map(({ folder }) => folder));
  const project = bases.flatMap((base) => foldersIn(base, 'project'));
  return { project: project.filter(({ folder }) => !users.has(folder)), user };
}

function foldersIn(base: string, kind: 'project' | 'user'): readonly CommandFolder[] {
  return (Object.keys(PLACES) as CommandDialect[]).flatMap((dialect) =>
    PLACES[dialect][kind].map((folder) => ({ folder: join(base, folder), dialect })),
  );
}
