import { realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

import { isBelow } from '@patchbay/files';
import type { Capability, ChangeObservable, Problem, SkillResource } from '@patchbay/protocols';

import { FolderSkills, type SkillRoots } from './folder-skills.ts';
import type { SkillRoot } from './skill-reader.ts';

export interface PackageSkillsOptions {
  /** The capability id. */
  readonly id: string;
  /** Names of installed packages. Only those that are named are looked at. */
  readonly packages: readonly string[];
  /** Packages are looked up as a module in this folder would find them. Default: the working directory. */
  readonly from?: string;
  /** Among several skills of one name the greatest is shown. Default 10: after those of the project and the user. */
  readonly precedence?: number;
  /** Whether their authors may decide about the agent. Default false. */
  readonly trusted?: boolean | 'ask';
}

/** Where packages keep skills, beside `skills`. */
const HIDDEN_PLACES = ['.agents/skills', '.claude/skills'] as const;

/**
 * Skills that npm packages bring: in `skills`, `.agents/skills` or `.claude/skills`, or a SKILL.md at the package's root.
 * A skill in the folder of a skill is one too. No link leads out of the package.
 */
export function packageSkills(
  options: PackageSkillsOptions,
): Capability & SkillResource & ChangeObservable {
  const { id, packages, precedence = 10, trusted = false } = options;
  const from = resolve(options.from ?? '.');
  return new FolderSkills({
    id,
    optional: true,
    precedence,
    followLinks: false,
    nested: true,
    trusted,
    validate: 'lenient',
    roots: async () => {
      const found = await Promise.all(packages.map((name) => rootsOf(name, from, id)));
      return {
        roots: found.flatMap(({ roots }) => roots),
        problems: found.flatMap(({ problems }) => problems),
      };
    },
  });
}

async function rootsOf(name: string, from: string, source: string): Promise<SkillRoots> {
  const missing = (code: string, message: string): SkillRoots => {
    const problem: Problem = { source, code, severity: 'warning', message };
    return { roots: [], problems: [problem] };
  };
  if (!PACKAGE_NAME.test(name))
    return missing('invalid-config', `"${name}" is not the name of a package.`);
  const folder = await packageFolder(name, from);
  if (folder === undefined)
    return missing(
      'not-found',
      `The package ${name} is not installed for ${from}. Install it, or leave it out.`,
    );
  const whole = await isThere(join(folder, 'SKILL.md'));
  // The whole package is its one skill's folder, and `skills` lies in it.
  const places = whole ? ['.', ...HIDDEN_PLACES] : ['skills', ...HIDDEN_PLACES];
  const roots = new Map<string, SkillRoot>();
  const problems: Problem[] = [];
  for (const place of places) {
    const path = join(folder, place);
    const real = await realpath(path).catch(() => undefined);
    if (real === undefined || roots.has(real)) continue;
    if (isBelow(folder, real)) roots.set(real, { folder: real, origin: `npm:${name}` });
    else
      problems.push(
        ...missing('link-refused', `${path} leads out of the package ${name}, and was left out.`)
          .problems,
      );
  }
  if (roots.size > 0 || problems.length > 0) return { roots: [...roots.values()], problems };
  return missing('not-found', `The package ${name} in ${folder} has no skills. Leave it out.`);
}

const PACKAGE_NAME = /^(?:@[\w.~-]+\/)?[\w~-][\w.~-]*$/;

/** As Node looks for packages: `node_modules` in each folder upwards. Its real folder; `exports` do not matter. */
async function packageFolder(name: string, from: string): Promise<string | undefined> {
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, 'node_modules', name);
    if (await isThere(join(folder, 'package.json'))) return realpath(folder);
    if (dirname(at) === at) return undefined;
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
