import { describeScope, type Identity, type Scope } from '@patchbay/protocols';

import type { Activity } from './activity.ts';
import { matchesAny } from './pattern.ts';
import type { VersionedState } from './session-state.ts';

/** Names to keep and names to leave out; `*` matches any run of characters. `exclude` wins. */
export interface NameFilter {
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
}

/** Narrows what a view shows. It can take away, never add. */
export interface ViewFilter {
  /** By the name that a model sees: `github__*`. */
  readonly tools?: NameFilter;
  /** By the skill's name. */
  readonly skills?: NameFilter;
}

/** Who looks: everything that two views must have in common to see the same. */
export interface Viewer {
  readonly scope: Scope;
  readonly identity: Identity | undefined;
  readonly filter: ViewFilter;
  readonly state: VersionedState;
  readonly activity: Activity;
  /** Equal for viewers that see the same registrations through the same filter. Without the identity. */
  readonly key: string;
}

export function makeViewer(viewer: Omit<Viewer, 'key'>): Viewer {
  const { tools, skills } = viewer.filter;
  const filter =
    tools === undefined && skills === undefined ? '' : ` ${JSON.stringify([tools, skills])}`;
  return { ...viewer, key: describeScope(viewer.scope) + filter };
}

export function passes(filter: NameFilter | undefined, name: string): boolean {
  if (filter === undefined) return true;
  if (filter.include !== undefined && !matchesAny(filter.include, name)) return false;
  return filter.exclude === undefined || !matchesAny(filter.exclude, name);
}
