import { PatchbayError } from '@patchbay/protocols';

/** A URI, as far as routing looks at it. */
export interface RoutedUri {
  readonly uri: string;
  /** Lower case. */
  readonly scheme: string;
  /** Between `//` and the next `/`, percent-decoded. Case is kept: it is a name, not a host. */
  readonly authority: string;
  /** Behind the authority, without the leading `/`, as written. */
  readonly path: string;
}

const MAX_LENGTH = 8192;
const DECODE_ROUNDS = 5;

/**
 * Takes a URI apart, and refuses one that could leave its place: `..` as a segment, backslashes, NUL and control
 * characters, however often they are percent-encoded.
 * @throws PatchbayError `invalid-uri`
 */
export function parseUri(uri: string): RoutedUri {
  const match = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]*)(?:\/([^?#]*))?$/.exec(
    uri.length > MAX_LENGTH ? '' : uri,
  );
  if (match === null) {
    throw invalid(uri, 'it must look like scheme://name/path, without query or fragment');
  }
  const [, scheme = '', authority = '', path = ''] = match;
  refuseTraversal(uri, authority);
  refuseTraversal(uri, path);
  return { uri, scheme: scheme.toLowerCase(), authority: decode(uri, authority), path };
}

function refuseTraversal(uri: string, part: string): void {
  let text = part;
  for (let round = 0; round < DECODE_ROUNDS; round++) {
    // What becomes a dot, a slash or a backslash where text is normalized counts as one.
    const plain = text.normalize('NFKC');
    if (Array.from(plain).some(isForbidden))
      throw invalid(uri, 'it contains a backslash or a control character');
    if (plain.split('/').includes('..')) throw invalid(uri, 'it contains ".."');
    // What was encoded once may contain a `%` that stands for itself.
    const next = round === 0 ? decode(uri, text) : decodeAscii(text);
    if (next === text) return;
    text = next;
  }
  throw invalid(uri, 'it is percent-encoded too often');
}

const isForbidden = (c: string): boolean => c === '\\' || c < ' ' || c === '\u007f';

function decode(uri: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw invalid(uri, 'its percent-encoding is broken', cause);
  }
}

const decodeAscii = (text: string): string =>
  text.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );

function invalid(uri: string, why: string, cause?: unknown): PatchbayError {
  return new PatchbayError(
    'invalid-uri',
    `Invalid URI ${JSON.stringify(uri.slice(0, 200))}: ${why}.`,
    cause === undefined ? {} : { cause },
  );
}
