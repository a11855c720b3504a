/** What changed. The union is open. */
export type ChangeKind =
  | 'tools_changed'
  | 'skills_changed'
  | 'commands_changed'
  | 'prompts_changed'
  | 'resources_changed'
  | 'resource_updated'
  | 'instructions_changed'
  | 'status_changed'
  | 'registered'
  | 'unregistered'
  | (string & {});

/** Something changed: look again. It carries no new state. (RFC-0051 "ChangeEvent") */
export interface ChangeEvent {
  /** The capability's id. */
  readonly capability: string;
  readonly kind: ChangeKind;
  /** What exactly, where the source knows: `mcp://github/…`, a file. */
  readonly sourceUri?: string;
}

/** Tells that something changed. (RFC-0051 "ChangeObservable") */
export interface ChangeObservable {
  /**
   * Differs from an earlier answer if anything may have changed since. A source that cannot tell at the moment (it only
   * watches while somebody listens, say) answers differently each time, and so is asked again each time.
   */
  revision(): number | string;
  /** From now on, until `signal` aborts. Two listeners each get every kind of change; a slow one gets each kind once. */
  changes(signal: AbortSignal): AsyncIterable<ChangeEvent>;
}
