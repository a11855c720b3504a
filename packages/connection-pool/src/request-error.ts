import { PatchbayError } from '@patchbay/protocols';

import { capital } from './deadline.ts';
import { LOST, TOO_LARGE } from './stand-in.ts';

interface RequestFacts {
  /** What was asked, and of whom: `the call of "echo" of "shop"`. */
  readonly what: string;
  /** Why the link is gone, if it is. */
  readonly lost: PatchbayError | undefined;
  /** We closed it. */
  readonly closing: boolean;
  readonly hasSession: boolean;
  readonly redact?: (text: string) => string;
}

/** Errors of the network before anything was sent. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** Errors of the network while something was under way. */
const BROKEN: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_ABORTED',
]);
/** Answers of HTTP that come before any handler of the server runs. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404, 405, 406, 413, 415, 429, 503]);

/**
 * What a failed request came from: the connection, or the server's answer. `details.neverRan` says that no handler of the
 * server can have run; `details.sessionEnded` that the server does not know this connection any more.
 */
export function requestError(thrown: unknown, facts: RequestFacts): PatchbayError {
  if (PatchbayError.isInstance(thrown)) return thrown;
  const { lost, closing, what } = facts;
  if (lost !== undefined) return again(lost, thrown);
  if (closing) {
    return new PatchbayError('closed', `The connection was closed during ${what}.`, {
      cause: thrown,
    });
  }
  const code = fieldOf(thrown, 'code');
  if (code === 'CONNECTION_CLOSED' || code === 'NOT_CONNECTED')
    return connectionLost(thrown, what, code === 'NOT_CONNECTED' ? { neverRan: true } : {});
  if (isLost(thrown)) return connectionLost(thrown, what, {});
  const limit = fieldOf(fieldOf(thrown, 'data'), TOO_LARGE);
  if (typeof limit === 'number') {
    const message = `The answer to ${what} is longer than ${limit} bytes and was dropped. Ask for less, or raise \`maxLineBytes\`.`;
    return new PatchbayError('too-large', message, { cause: thrown, details: { limit } });
  }
  const status = fieldOf(thrown, 'status');
  if (typeof status === 'number') return httpError(thrown, status, facts);
  const network = networkCode(thrown);
  if (network !== undefined)
    return connectionLost(thrown, what, {
      errno: network,
      ...(NEVER_SENT.has(network) ? { neverRan: true } : {}),
    });
  return refusedBy(thrown, facts, typeof code === 'number' ? { rpcCode: code } : {});
}

function httpError(thrown: unknown, status: number, facts: RequestFacts): PatchbayError {
  if (facts.hasSession && (status === 404 || (status === 400 && isSessionError(thrown)))) {
    return connectionLost(thrown, facts.what, { status, neverRan: true, sessionEnded: true });
  }
  const neverRan = REFUSED.has(status) || (status >= 300 && status < 400);
  return refusedBy(thrown, facts, { status, ...(neverRan ? { neverRan } : {}) });
}

/** A 400 with an answer to this request is about the request; one about a session has -32000 or -32001, or no JSON. */
function isSessionError(thrown: unknown): boolean {
  const data = fieldOf(thrown, 'data');
  const text = fieldOf(data, 'text');
  try {
    const error = fieldOf(JSON.parse(String(text)), 'error');
    const code = fieldOf(error, 'code');
    return code === -32_000 || code === -32_001;
  } catch {
    return true;
  }
}

function again(lost: PatchbayError, thrown: unknown): PatchbayError {
  return new PatchbayError(lost.code, lost.message, {
    cause: thrown,
    ...(lost.details === undefined ? {} : { details: lost.details }),
  });
}

function connectionLost(
  cause: unknown,
  what: string,
  details: Readonly<Record<string, unknown>>,
): PatchbayError {
  const why =
    details['sessionEnded'] === true
      ? `The server ended the session before ${what}.`
      : details['neverRan'] === true
        ? `The server could not be reached for ${what}.`
        : `The connection was lost before the answer to ${what} came.`;
  return new PatchbayError('connection-lost', why, { cause, details });
}

function refusedBy(
  thrown: unknown,
  { what, redact }: RequestFacts,
  details: Readonly<Record<string, unknown>>,
): PatchbayError {
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  const data = details['rpcCode'] === undefined ? undefined : fieldOf(thrown, 'data');
  return new PatchbayError(
    'protocol-error',
    `${capital(what)} was refused: ${redact?.(said) ?? said}`,
    { cause: thrown, details: { ...details, ...(data === undefined ? {} : { data }) } },
  );
}

const isLost = (thrown: unknown): boolean => fieldOf(fieldOf(thrown, 'data'), LOST) === true;

/** The code of the network's error, which is the cause of what `fetch` threw. */
function networkCode(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; depth < 4; error = fieldOf(error, 'cause'), depth++) {
    const code = fieldOf(error, 'code');
    if (typeof code === 'string' && (NEVER_SENT.has(code) || BROKEN.has(code))) return code;
  }
  return undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}
