import { PatchbayError } from './errors.ts';

/**
 * Who asks. Each field narrows: nothing set is the whole program ("pool"), then a session, an agent in it, one turn of
 * that agent. (RFC-0051 "Scope")
 */
export interface Scope {
  /** One conversation or one user's stay. Never an empty string. */
  readonly session?: string;
  /**
   * A path: `coder`, or `coder/researcher` for a sub-agent of it. A sub-agent sees what its parents see. A part may end in
   * `#` and a number: `coder/researcher#2` is the second one that was started of `coder/researcher`. It sees what is meant
   * for all of them, and none sees what is another's.
   */
  readonly agent?: string;
  /** One turn: from a user message to the end of the answer. Needs `session`. */
  readonly turn?: string;
}

/** Where something is registered. It is visible to every {@link Scope} that agrees with all the fields set here. */
export interface RegistrationScope extends Scope {
  /**
   * `{ agent: 'coder', everySession: true }` is the agent `coder` of every session. Without it an agent needs a
   * session: an agent of the same name in another session is another agent.
   */
  readonly everySession?: boolean;
}

/** For whom a call is made: whose credentials a connection uses. `undefined` stands for the program's own. */
export interface Identity {
  /** Unique per principal. Connections, caches and tokens are kept apart by it. */
  readonly id: string;
  /** Anything a header function or an authorization provider needs, a token for example. Never shown or logged. */
  readonly [claim: string]: unknown;
}

/**
 * Checks a scope and returns the clean form of it, with only the fields that are set.
 * @throws PatchbayError `invalid-scope` for an empty string, an agent path with an empty part, an agent without a
 * session (unless `everySession`), or a turn without a session.
 */
export function normalizeScope(scope: RegistrationScope = {}): RegistrationScope {
  const out: { -readonly [K in keyof RegistrationScope]: RegistrationScope[K] } = {};
  for (const field of ['session', 'agent', 'turn'] as const) {
    const value: unknown = scope[field];
    if (value === undefined) continue;
    if (typeof value !== 'string' || value === '') {
      throw invalid(scope, `\`${field}\` must be a non-empty string; leave it out instead`);
    }
    out[field] = value;
  }
  if (out.agent?.split('/').includes('')) {
    throw invalid(
      scope,
      `\`agent\` is a path like "coder" or "coder/researcher", without empty parts`,
    );
  }
  if (scope.everySession === true) {
    if (out.session !== undefined)
      throw invalid(scope, '`everySession` and `session` exclude each other');
    if (out.agent === undefined) throw invalid(scope, '`everySession` needs an `agent`');
    if (out.turn !== undefined) throw invalid(scope, '`turn` needs `session`');
    out.everySession = true;
  } else if (out.session === undefined) {
    if (out.turn !== undefined) throw invalid(scope, '`turn` needs `session`');
    if (out.agent !== undefined) {
      throw invalid(
        scope,
        '`agent` needs `session`, or `everySession: true` for that agent of every session',
      );
    }
  }
  return Object.freeze(out);
}

/** Whether something registered at `at` is visible to `asking`. Both must be normalized. Visibility only ever goes down. */
export function scopeCovers(at: RegistrationScope, asking: Scope): boolean {
  if (at.session !== undefined && at.session !== asking.session) return false;
  if (at.turn !== undefined && at.turn !== asking.turn) return false;
  return at.agent === undefined || (asking.agent !== undefined && leadsTo(at.agent, asking.agent));
}

const INSTANCE = /#\d+$/;

/** Whether the agent `path` is the agent `above`, one that was started of it, or below. */
function leadsTo(above: string, path: string): boolean {
  if (path === above || path.startsWith(`${above}/`)) return true;
  if (!path.includes('#')) return false;
  const parts = path.split('/');
  return above
    .split('/')
    .every((part, i) => parts[i] === part || parts[i]?.replace(INSTANCE, '') === part);
}

/** How deep a scope lies: of two registrations with one id the deeper one is seen. Greater is deeper. */
export function scopeDepth(at: RegistrationScope): number {
  const parts = at.agent?.split('/') ?? [];
  const instances = parts.filter((part) => INSTANCE.test(part)).length;
  const turn = at.turn === undefined ? 0 : 1e6;
  return turn + parts.length * 1e3 + instances * 2 + (at.session === undefined ? 0 : 1);
}

/** A scope as one string, for messages and as a map key: `pool`, `session=a`, `session=a agent=coder turn=1`. */
export function describeScope(scope: RegistrationScope): string {
  const parts = (['session', 'agent', 'turn'] as const)
    .filter((field) => scope[field] !== undefined)
    .map((field) => `${field}=${JSON.stringify(scope[field])}`);
  if (scope.everySession) parts.unshift('every session');
  return parts.length === 0 ? 'pool' : parts.join(' ');
}

function invalid(scope: RegistrationScope, why: string): PatchbayError {
  return new PatchbayError('invalid-scope', `Invalid scope ${JSON.stringify(scope)}: ${why}.`);
}
