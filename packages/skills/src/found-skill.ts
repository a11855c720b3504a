import { join } from 'node:path';

import { fileStamp, type Disk } from '@patchbay/files';

/** A folder with a SKILL.md. */
export interface FoundSkill {
  /** As it was reached. */
  readonly path: string;
  /** The real folder: every read stays in it. */
  readonly root: string;
  /** Of its SKILL.md. */
  readonly file: string;
  /** Of its SKILL.md, in bytes. */
  readonly size: number;
  /** Differs when the file, or an mcp.json beside it, was changed or replaced. */
  readonly stamp: string;
  /** Whether an mcp.json lies beside it. */
  readonly servers: boolean;
  /** When either was changed, in milliseconds. */
  readonly changedAt: number;
}

/** What is at the place of a skill now; `beside`: an mcp.json may be too. `undefined` if its SKILL.md is no file. */
export async function statSkill(
  { path, root, file }: Pick<FoundSkill, 'path' | 'root' | 'file'>,
  beside: boolean,
  disk: Disk,
): Promise<FoundSkill | undefined> {
  const found = await disk.stat(file);
  if (found?.isFile() !== true) return undefined;
  const servers = beside ? await disk.stat(join(root, SERVERS_FILE)) : undefined;
  const stats = servers === undefined ? [found] : [found, servers];
  return {
    path,
    root,
    file,
    size: Number(found.size),
    stamp: stats.map(fileStamp).join(' '),
    servers: servers !== undefined,
    changedAt: Math.max(...stats.map(({ ctimeMs }) => Number(ctimeMs))),
  };
}

/** Servers that a skill brings, beside its SKILL.md. */
export const SERVERS_FILE = 'mcp.json';

export const isSkillFile = (name: string): boolean => name.toLowerCase() === 'skill.md';
