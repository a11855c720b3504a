import { scopeCovers } from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

import { AgentTree } from '../src/agent-tree.ts';

const NAMES = ['a', 'a#1', 'a#2', 'a#1#2', 'b#1'];
const joined = (paths: readonly string[]) =>
  paths.flatMap((path) => NAMES.map((name) => `${path}/${name}`));
const PAIRS = joined(NAMES);
const PATHS = [undefined, ...NAMES, ...PAIRS, ...joined(PAIRS)];
type Path = (typeof PATHS)[number];

const covers = (above: Path, below: Path) =>
  scopeCovers(
    { session: 's', ...(above === undefined ? {} : { agent: above }) },
    { session: 's', ...(below === undefined ? {} : { agent: below }) },
  );
const sorted = (found: Iterable<Path>) => [...found].toSorted((a = '', b = '') => (a < b ? -1 : 1));

const filled = () => {
  const tree = new AgentTree<Path>();
  for (const path of PATHS) tree.add(path, path);
  return tree;
};

describe('an AgentTree', () => {
  it('finds above and below every agent what the rule of scopes says, each once', () => {
    const tree = filled();
    for (const at of PATHS) {
      expect([at, sorted(tree.walk(at, { below: true }))]).toEqual([
        at,
        sorted(PATHS.filter((path) => covers(at, path))),
      ]);
      expect([at, sorted(tree.walk(at, { above: true }))]).toEqual([
        at,
        sorted(PATHS.filter((path) => covers(path, at))),
      ]);
    }
  });

  it('finds around an agent all that whoever is below it can see', () => {
    const tree = filled();
    for (const at of PATHS) {
      const below = PATHS.filter((path) => covers(at, path));
      const found = new Set(tree.walk(at, { above: true, below: true }));
      expect([
        at,
        PATHS.filter((path) => !found.has(path) && below.some((one) => covers(path, one))),
      ]).toEqual([at, []]);
    }
  });

  it('holds nothing when all that was added is deleted', () => {
    const tree = filled();
    expect(tree.delete('c', 'c')).toBe(false);
    for (const path of PATHS) expect([path, tree.delete(path, path)]).toEqual([path, true]);
    for (const path of PATHS) expect([path, tree.delete(path, path)]).toEqual([path, false]);
    expect(tree.isEmpty).toBe(true);
  });
});
