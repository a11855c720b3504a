import { describeScope, type Identity, type Scope, type Stop } from '@patchbay/protocols';

import type { Activity } from './activity.ts';
import { matchesAny } from './pattern.ts';
import type { VersionedState } from './session-state.ts';

/** Names to keep and names to leave out; `*` matches any run of characters. `exclude` wins. */
export interface NameFilter {
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
}

/** Narrows what a view shows. It can take away, never add: of several filters a name has to pass every one. */
export interface ViewFilter {
  /** By the name that a model sees: `github__*`. */
  readonly tools?: NameFilter | readonly NameFilter[] | undefined;
  /** By the skill's name. */
  readonly skills?: NameFilter | readonly NameFilter[] | undefined;
}

/** Who looks: everything that two views must have in common to see the same. */
export interface Viewer {
  readonly scope: Scope;
  readonly identity: Identity | undefined;
  readonly filter: ViewFilter;
  readonly state: VersionedState;
  readonly activity: Activity;
  /** Over when the view has ended: its compiles and calls end with it. */
  readonly ended: Stop;
  /** The view: whoever still uses what it gave keeps it, so that it is ended with its scope. */
  readonly view: object;
  /** Equal for viewers that see the same registrations through the same filter. Without the identity. */
  readonly key: string;
}

export function makeViewer(viewer: Omit<Viewer, 'key'>): Viewer {
  const { tools, skills } = viewer.filter;
  const filter =
    tools === undefined && skills === undefined ? '' : ` ${JSON.stringify([tools, skills])}`;
  return { ...viewer, key: describeScope(viewer.scope) + filter };
}

export function passes(
  filters: NameFilter | readonly NameFilter[] | undefined,
  name: string,
): boolean {
  if (filters === undefined) return true;
  return [filters].flat().every(({ include, exclude }) => {
    if (include !== undefined && !matchesAny(include, name)) return false;
    return exclude === undefined || !matchesAny(exclude, name);
  });
}
