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
  readonly era?: 'legacy' | 'modern' | undefined;
}

/** Errors of the network before anything was sent. */
const NEVER_SENT: ReadonlySet<string> = new Set(
  'ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH UND_ERR_CONNECT_TIMEOUT'.split(' '),
);
/** Errors of the network while something was under way. */
const BROKEN: ReadonlySet<string> = new Set('ECONNRESET EPIPE ETIMEDOUT ECONNABORTED'.split(' '));
/** Codes with which older servers say over HTTP that they do not know a session, and what newer ones say to the older. */
const NO_SESSION: ReadonlySet<unknown> = new Set([-32_000, -32_001]);
const OTHER_VERSION = -32_022;
/** How much of what the server said is put into a message, in characters. */
const MAX_SAID = 1_000;
/** Answers of HTTP that come before any handler of the server runs. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404, 405, 406, 413, 415, 429, 503]);

/**
 * What a failed request came from: the connection, or the server's answer. `details.neverRan` says that no handler of the
 * server can have run; `details.sessionEnded` that the server does not know this connection any more.
 */
export function requestError(thrown: unknown, facts: RequestFacts): PatchbayError {
  const own = alongCauses(thrown, (error) => PatchbayError.isInstance(error));
  if (PatchbayError.isInstance(own)) return own;
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
  // Also an answer that is cut off where it looks like the end.
  if (isLost(thrown) || thrown instanceof SyntaxError) return connectionLost(thrown, what, {});
  // It says that it is a server of the other era: another one is there now.
  if (code === OTHER_VERSION)
    return connectionLost(thrown, what, { sessionEnded: true, neverRan: true });
  const limit = fieldOf(fieldOf(thrown, 'data'), TOO_LARGE);
  if (typeof limit === 'number') {
    const message = `The answer to ${what} is longer than ${limit} bytes and was dropped. Ask for less, or raise \`maxLineBytes\`.`;
    return new PatchbayError('too-large', message, { cause: thrown, details: { limit } });
  }
  const status = fieldOf(thrown, 'status');
  if (typeof status === 'number') return httpError(thrown, status, facts);
  const isNetwork = (error: unknown) => isNetworkCode(fieldOf(error, 'code'));
  const network = fieldOf(alongCauses(thrown, isNetwork), 'code') as string | undefined;
  // `fetch` fails with a TypeError, whatever the reason.
  if (network !== undefined || thrown instanceof TypeError)
    return connectionLost(thrown, what, {
      ...(network === undefined ? {} : { errno: network }),
      ...(NEVER_SENT.has(network ?? '') ? { neverRan: true } : {}),
    });
  return refusedBy(thrown, facts, typeof code === 'number' ? { rpcCode: code } : {});
}

function httpError(thrown: unknown, status: number, facts: RequestFacts): PatchbayError {
  const said = answerIn(thrown);
  const noSession = NO_SESSION.has(fieldOf(fieldOf(said, 'error'), 'code'));
  // A 400 with an answer to this request is about the request; one about a session has a code of its own, or is no JSON.
  // A newer server has no sessions: where one answers like this, an older one is there now.
  const isAboutUs = noSession || said === undefined || (facts.hasSession && status === 404);
  const mayEnd = facts.hasSession || facts.era === 'modern';
  const ended = mayEnd && (status === 404 || status === 400) && isAboutUs;
  if (ended) {
    return connectionLost(thrown, facts.what, { status, neverRan: true, sessionEnded: true });
  }
  const neverRan = REFUSED.has(status) || (status >= 300 && status < 400);
  return refusedBy(thrown, facts, { status, ...(neverRan ? { neverRan } : {}) });
}

/** The JSON that came with an error of HTTP; `undefined` if there was none. */
function answerIn(thrown: unknown): unknown {
  try {
    return JSON.parse(String(fieldOf(fieldOf(thrown, 'data'), 'text')));
  } catch {
    return undefined;
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
  const { neverRan, sessionEnded } = details;
  const why =
    neverRan !== true
      ? `The connection was lost before the answer to ${what} came.`
      : sessionEnded === true
        ? `The server ended the session before ${what}.`
        : `The server could not be reached for ${what}.`;
  return new PatchbayError('connection-lost', why, { cause, details });
}

function refusedBy(
  thrown: unknown,
  { what }: RequestFacts,
  details: Readonly<Record<string, unknown>>,
): PatchbayError {
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  const data = details['rpcCode'] === undefined ? undefined : fieldOf(thrown, 'data');
  return new PatchbayError(
    'protocol-error',
    `${capital(what)} was refused: ${said.length > MAX_SAID ? `${said.slice(0, MAX_SAID)} …` : said}`,
    { cause: thrown, details: { ...details, ...(data === undefined ? {} : { data }) } },
  );
}

const isLost = (thrown: unknown): boolean => fieldOf(fieldOf(thrown, 'data'), LOST) === true;

/** An error, or what caused it: the network's own error is the cause of what `fetch` threw. */
function alongCauses(thrown: unknown, isIt: (error: unknown) => boolean): unknown {
  let error = thrown;
  for (let depth = 0; depth < 4 && error !== undefined; depth++) {
    if (isIt(error)) return error;
    error = fieldOf(error, 'cause');
  }
  return undefined;
}

const isNetworkCode = (code: unknown): boolean =>
  typeof code === 'string' && (NEVER_SENT.has(code) || BROKEN.has(code));

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}
