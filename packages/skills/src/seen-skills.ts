import { stat } from 'node:fs/promises';
import { sep } from 'node:path';

import type { FileLook } from '@patchbay/files';
import type { Problem, SkillEntry } from '@patchbay/protocols';

import type { KnownSkill } from './skill-reader.ts';

/** Where a look was, and what it met there beside skills. */
export interface Around extends Pick<FileLook, 'folders' | 'ways'> {
  readonly problems: readonly Problem[];
}

/** What a look gave. */
export interface Seen {
  readonly around: Around;
  /** In the order of the roots, then of the paths. */
  readonly known: readonly KnownSkill[];
  readonly entries: readonly SkillEntry[];
  readonly byUri: ReadonlyMap<string, KnownSkill>;
  readonly problems: readonly Problem[];
}

export const NOTHING: Seen = {
  around: { folders: new Map(), ways: [], problems: [] },
  known: [],
  entries: [],
  byUri: new Map(),
  problems: [],
};

/** The result of a look from what was read. */
export function seenOf(known: readonly KnownSkill[], around: Around, uris: FreeUris): Seen {
  const byUri = new Map<string, KnownSkill>();
  const entries: SkillEntry[] = [];
  for (const item of known) {
    if (item.entry === undefined) continue;
    const entry = uris.under(freeUri(item.entry.uri, item.found.path, byUri), item.entry);
    byUri.set(entry.uri, item);
    entries.push(entry);
  }
  const problems = [...around.problems, ...known.flatMap((item) => item.problems)];
  return { around, known, entries, byUri, problems };
}

/** Entries that have another URI because of their neighbours. */
export class FreeUris {
  readonly #renamed = new WeakMap<SkillEntry, SkillEntry>();

  /** The same object for the same entry and URI. */
  under(uri: string, entry: SkillEntry): SkillEntry {
    if (entry.uri === uri) return entry;
    const before = this.#renamed.get(entry);
    if (before?.uri === uri) return before;
    const renamed = Object.freeze({ ...entry, uri });
    this.#renamed.set(entry, renamed);
    return renamed;
  }
}

/** Two skills of one name in one source: the second is reached by as much of its path as tells it from the others. */
function freeUri(own: string, path: string, taken: ReadonlyMap<string, unknown>): string {
  if (!taken.has(own)) return own;
  const parts = path.split(sep).filter((part) => part !== '');
  const uris = parts.map((_, i) => {
    const way = parts
      .slice(-1 - i)
      .map(encodeURIComponent)
      .join('/');
    return `skill://${way}/SKILL.md`;
  });
  return uris.find((uri) => !taken.has(uri)) ?? own;
}

/** For a watcher. With `before`, in milliseconds, as if nobody had seen what was changed since. */
export const lookOf = (
  { known, around: { folders, ways } }: Seen,
  before: number = Number.POSITIVE_INFINITY,
): FileLook => ({
  files: new Map(
    known
      .filter(({ found }) => found.changedAt < before)
      .map(({ found }) => [found.file, found.stamp]),
  ),
  folders,
  ways,
});

/** By SKILL.md. */
export const urisOf = ({ byUri }: Seen): ReadonlyMap<string, string> =>
  new Map([...byUri].map(([uri, { found }]) => [found.file, uri]));

/** Whether what was a skill is none now. */
export const isLost = (before: KnownSkill, now: KnownSkill | undefined): boolean =>
  before.entry !== undefined && now?.entry === undefined;

/** Whether a skill is lost whose folder is still there: its file may be in the middle of being written. */
export async function areLost(
  before: readonly KnownSkill[],
  now: readonly KnownSkill[],
): Promise<boolean> {
  const byFile = new Map(now.map((item) => [item.found.file, item]));
  const lost = before.filter((item) => isLost(item, byFile.get(item.found.file)));
  const there = await Promise.all(lost.map(({ found }) => isFolder(found.path)));
  return there.includes(true);
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
