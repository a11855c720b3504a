/**
 * What went wrong, for programs. The union is closed for patchbay's own packages; others may use codes of their own
 * (`code` is typed `PatchbayCode | (string & {})`).
 */
export type PatchbayCode =
  // registration and scopes
  | 'invalid-scope'
  | 'duplicate-id'
  | 'invalid-id'
  | 'partial-protocol'
  | 'circular-composition'
  | 'composition-depth'
  | 'closed'
  // tools and calls
  | 'tool-unavailable'
  | 'tool-hidden'
  | 'tool-name'
  | 'invalid-arguments'
  | 'schema-unusable'
  | 'approval-required'
  | 'approval-denied'
  | 'aborted'
  | 'timeout'
  | 'outcome-unknown'
  // sources and connections
  | 'source-failed'
  | 'source-slow'
  | 'connect-failed'
  | 'connection-lost'
  | 'unavailable'
  | 'identity-required'
  | 'identity-mismatch'
  | 'authorization-required'
  | 'authorization-failed'
  | 'pool-exhausted'
  | 'not-supported'
  | 'protocol-error'
  | 'too-large'
  | 'invalid-config'
  // URIs, skills, commands, files
  | 'invalid-uri'
  | 'unknown-scheme'
  | 'not-found'
  | 'outside-root'
  | 'skill-changed'
  | 'not-trusted'
  | 'command-unknown'
  | 'command-arguments'
  // anything that was thrown by foreign code and has no code of its own
  | 'internal';

/** What {@link PatchbayError} takes beside code and message. */
export interface PatchbayErrorOptions {
  /** What was caught, kept as it is. */
  readonly cause?: unknown;
  /** The capability, server or file that it concerns. */
  readonly source?: string;
  /** Further facts, as plain data without secrets: an exit code, a list of known names, a violation per argument. */
  readonly details?: Readonly<Record<string, unknown>>;
}

const BRAND: unique symbol = Symbol.for('patchbay.error') as never;

/**
 * The one error class of patchbay. The message says what happened, to what, and what to do; `code` is for programs;
 * nothing parses a message. Use {@link PatchbayError.isInstance} rather than `instanceof`: it also recognises an error
 * of a second copy of this package.
 */
export class PatchbayError extends Error {
  readonly code: PatchbayCode | (string & {});
  readonly source: string | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  static {
    Object.defineProperty(this.prototype, BRAND, { value: true });
    Object.defineProperty(this.prototype, 'name', {
      value: 'PatchbayError',
      writable: true,
      configurable: true,
    });
  }

  constructor(
    code: PatchbayCode | (string & {}),
    message: string,
    options: PatchbayErrorOptions = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.source = options.source;
    this.details = options.details;
  }

  /** Whether `value` is a patchbay error, also one of another copy of this package. */
  static isInstance(value: unknown): value is PatchbayError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

/** A capability that contains itself. (RFC-0051 "Composition via Client Sharing") */
export class CircularCompositionError extends PatchbayError {
  static {
    Object.defineProperty(this.prototype, 'name', {
      value: 'CircularCompositionError',
    });
  }

  constructor(chain: readonly string[]) {
    super(
      'circular-composition',
      `A capability may not contain itself: ${chain.join(' > ')}. Remove one of the links.`,
      {
        details: { chain },
      },
    );
  }
}

/**
 * Anything thrown, as a {@link PatchbayError}: one that already is one is returned as it is; everything else becomes
 * the `cause` of one with `code`.
 */
export function toPatchbayError(
  thrown: unknown,
  code: PatchbayCode = 'internal',
  options: { readonly source?: string; readonly what?: string } = {},
): PatchbayError {
  if (PatchbayError.isInstance(thrown)) return thrown;
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  const message = options.what === undefined ? said : `${options.what}: ${said}`;
  return new PatchbayError(code, message, {
    cause: thrown,
    ...(options.source === undefined ? {} : { source: options.source }),
  });
}
