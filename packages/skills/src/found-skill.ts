import type { BigIntStats } from 'node:fs';
import { sep } from 'node:path';

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

type Place = Pick<FoundSkill, 'path' | 'root' | 'file'>;

/** What is at the place of a skill now; `beside`: an mcp.json may be too. `undefined` if its SKILL.md is no file. */
export async function statSkill(
  place: Place,
  beside: boolean,
  disk: Disk,
): Promise<FoundSkill | undefined> {
  const found = await disk.stat(place.file);
  if (found?.isFile() !== true) return undefined;
  return skillAt(
    place,
    found,
    beside ? await disk.stat(inFolder(place.root, SERVERS_FILE)) : undefined,
  );
}

/** The skill at a place, of what was seen there: its SKILL.md, and the mcp.json beside it. */
export function skillAt(
  place: Place,
  found: BigIntStats,
  servers: BigIntStats | undefined,
): FoundSkill {
  const { path, root, file } = place;
  const stamp = fileStamp(found);
  return {
    path,
    root,
    file,
    size: Number(found.size),
    stamp: servers === undefined ? stamp : `${stamp} ${fileStamp(servers)}`,
    servers: servers !== undefined,
    changedAt: Math.max(Number(found.ctimeMs), Number(servers?.ctimeMs ?? 0)),
  };
}

/** As `join` with one name, for the path of a folder that is absolute and resolved: `join` looks at each of its characters. */
export const inFolder = (folder: string, name: string): string =>
  folder.endsWith(sep) ? folder + name : folder + sep + name;

/** As the specification writes it. */
export const SKILL_FILE = 'SKILL.md';
/** Servers that a skill brings, beside its SKILL.md. */
export const SERVERS_FILE = 'mcp.json';

export const isSkillFile = (name: string): boolean => name.toLowerCase() === 'skill.md';
