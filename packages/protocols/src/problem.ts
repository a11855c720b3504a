import { PatchbayError, toPatchbayError, type PatchbayCode } from './errors.ts';

/**
 * Something that is not as its author meant it: a server that cannot be reached, a SKILL.md that had to be repaired, a
 * tool with an unusable schema. Problems are data: nothing is thrown, nothing disappears. Safe to show: no secrets.
 */
export interface Problem {
  /** Who has the problem: a capability id, or a capability id and what is inside it (`my-skills`, `github`). */
  readonly source: string;
  readonly code: PatchbayCode | (string & {});
  /** What happened, to what, and what to do. One line. */
  readonly message: string;
  /** `error`: something is missing. `warning`: it works, but not as written. */
  readonly severity: 'error' | 'warning';
  /** Since when, ISO 8601. */
  readonly since?: string;
  /** When it is tried again, ISO 8601; absent where only a change or a person can end it. */
  readonly retryAt?: string;
  /** Where a person can mend it. */
  readonly file?: string;
  /** Line in `file`, from 1. */
  readonly line?: number;
  /** The error behind it. Not part of what is serialized. */
  readonly cause?: unknown;
}

/** A problem from anything thrown, with the code, the retry time and the place that the error states. */
export function problemFrom(
  source: string,
  thrown: unknown,
  more: { readonly since?: string; readonly code?: PatchbayCode } = {},
): Problem {
  const error = toPatchbayError(thrown, more.code ?? 'source-failed', { source });
  const details = error.details ?? {};
  const text = (key: string) => (typeof details[key] === 'string' ? { [key]: details[key] } : {});
  const problem: Problem = {
    source,
    code: error.code,
    message: error.message,
    severity: 'error',
    ...(more.since === undefined ? {} : { since: more.since }),
    ...text('retryAt'),
    ...text('file'),
    ...(typeof details['line'] === 'number' ? { line: details['line'] } : {}),
  };
  return withCause(problem, PatchbayError.isInstance(thrown) ? (thrown.cause ?? thrown) : thrown);
}

/** Not enumerable, so that a problem can be printed and serialized without whatever an error carries along. */
function withCause(problem: Problem, cause: unknown): Problem {
  return Object.freeze(
    Object.defineProperty(problem, 'cause', { value: cause, enumerable: false }),
  );
}
