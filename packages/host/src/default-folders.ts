import { dirname, join } from 'node:path';

import type { CommandDialect } from '@patchbay/commands';

/** Where the tools of the field keep skills, in a project and in the home folder. */
const SKILL_FOLDERS = [
  '.agents/skills',
  '.claude/skills',
  '.opencode/skills',
  '.opencode/skill',
  '.github/skills',
] as const;
const USER_SKILL_FOLDERS = ['.agents/skills', '.claude/skills', '.config/opencode/skills'] as const;

/** Where they keep commands, and how their placeholders are meant. */
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

/** From the working directory up to the root of the repository, nearest first. */
export function projectSkillFolders(
  cwd: string,
  repositoryRoot: string | undefined,
): readonly string[] {
  return upwards(cwd, repositoryRoot).flatMap((base) =>
    SKILL_FOLDERS.map((folder) => join(base, folder)),
  );
}

export function userSkillFolders(home: string): readonly string[] {
  return USER_SKILL_FOLDERS.map((folder) => join(home, folder));
}

export function projectCommandFolders(
  cwd: string,
  repositoryRoot: string | undefined,
): readonly CommandFolder[] {
  return upwards(cwd, repositoryRoot).flatMap((base) =>
    COMMAND_FOLDERS.map(([folder, dialect]) => ({ folder: join(base, folder), dialect })),
  );
}

export function userCommandFolders(home: string): readonly CommandFolder[] {
  return USER_COMMAND_FOLDERS.map(([folder, dialect]) => ({ folder: join(home, folder), dialect }));
}

function upwards(from: string, to: string | undefined): readonly string[] {
  if (to === undefined || from === to || dirname(from) === from) return [from];
  return [from, ...upwards(dirname(from), to)];
}
