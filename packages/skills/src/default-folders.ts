import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** The conventions of the field, and where each keeps its skills: in a project, and below the user's home folder. */
const PLACES = {
  agents: { project: ['.agents/skills'], user: ['.agents/skills'] },
  claude: { project: ['.claude/skills'], user: ['.claude/skills'] },
  opencode: {
    project: ['.opencode/skills', '.opencode/skill'],
    user: ['.config/opencode/skills', '.config/opencode/skill'],
  },
  github: { project: ['.github/skills'], user: [] },
} as const;

export type SkillConvention = keyof typeof PLACES;

export interface DefaultFoldersOptions {
  /** Where the project is. Default: the working directory. */
  readonly cwd?: string;
  /** Default: the home folder. `false`: no folders of the user. */
  readonly home?: string | false;
  /** Which conventions count, in the order in which they win a name. Default: all. */
  readonly conventions?: readonly SkillConvention[];
}

/** Folders that may be there: give them to `localSkills` with `optional: true`. */
export interface DefaultFolders {
  /** From the working directory up to the root of its repository, the nearest first. */
  readonly project: readonly string[];
  readonly user: readonly string[];
}

/**
 * Where people keep skills: `.agents/skills`, `.claude/skills`, `.opencode/skills`, `.github/skills` in the project, up to
 * the root of its repository (what has a `.git`; without one only the working directory), and the user's.
 */
export async function defaultSkillFolders(
  options: DefaultFoldersOptions = {},
): Promise<DefaultFolders> {
  const { home = homedir(), conventions = Object.keys(PLACES) as SkillConvention[] } = options;
  const bases = await upToRepository(resolve(options.cwd ?? '.'));
  const user =
    home === false
      ? []
      : conventions.flatMap((name) => PLACES[name].user.map((folder) => join(home, folder)));
  const project = bases
    .flatMap((base) =>
      conventions.flatMap((name) => PLACES[name].project.map((folder) => join(base, folder))),
    )
    // A home folder that is a repository itself: what is the user's stays the user's.
    .filter((folder) => !user.includes(folder));
  return { project, user };
}

async function upToRepository(cwd: string): Promise<readonly string[]> {
  const bases: string[] = [];
  for (let at = cwd; ; at = dirname(at)) {
    bases.push(at);
    if (await exists(join(at, '.git'))) return bases;
    if (dirname(at) === at) return [cwd];
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
