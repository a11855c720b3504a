import { PatchbayError } from '@patchbay/protocols';
import {
  findNodeAtLocation,
  getNodeValue,
  parseTree,
  printParseErrorCode,
  type ParseError,
} from 'jsonc-parser';
import { isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';

/** A place in a configuration file, from 1. */
interface Place {
  readonly line: number;
  readonly column: number;
}

/** A configuration file, read. */
export interface ConfigText {
  readonly value: unknown;
  /** Where something stands: `['mcpServers', 'github', 'command']`. The nearest place above it if it is not there. */
  locate(path: readonly (string | number)[]): Place | undefined;
}

/**
 * Reads YAML, or JSON with comments and trailing commas, by the name of the file. Nothing in it is executed.
 * @throws PatchbayError `invalid-config` with file, line and column
 */
export function readConfigText(file: string, text: string): ConfigText {
  const clean = text.replace(/^\uFEFF/, '');
  return /\.ya?ml$/i.test(file) ? readYaml(file, clean) : readJson(file, clean);
}

function readYaml(file: string, text: string): ConfigText {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'silent',
  });
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const [error] = document.errors;
  if (error !== undefined) throw unreadable(file, place(error.pos[0]), error.message);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 50 });
  } catch (cause) {
    throw unreadable(
      file,
      { line: 1, column: 1 },
      cause instanceof Error ? cause.message : String(cause),
      cause,
    );
  }
  return {
    value,
    locate: (path) => {
      for (let length = path.length; length >= 0; length--) {
        const part = path.slice(0, length);
        const parent = document.getIn(part.slice(0, -1), true);
        const pair = isMap(parent)
          ? parent.items.find(({ key }) => isScalar(key) && key.value === part.at(-1))
          : undefined;
        const node = length > 0 && pair !== undefined ? pair.key : document.getIn(part, true);
        const offset = isNode(node) ? node.range?.[0] : undefined;
        if (offset !== undefined) return place(offset);
      }
      return undefined;
    },
  };
}

function readJson(file: string, text: string): ConfigText {
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const place = (offset: number): Place => {
    const before = text.slice(0, offset).split('\n');
    return { line: before.length, column: before.at(-1)!.length + 1 };
  };
  const [error] = errors;
  if (error !== undefined)
    throw unreadable(file, place(error.offset), printParseErrorCode(error.error));
  return {
    value: tree === undefined ? undefined : (getNodeValue(tree) as unknown),
    locate: (path) => {
      if (tree === undefined) return undefined;
      for (let length = path.length; length >= 0; length--) {
        const node = findNodeAtLocation(tree, path.slice(0, length));
        if (node !== undefined)
          return place(node.parent?.type === 'property' ? node.parent.offset : node.offset);
      }
      return undefined;
    },
  };
}

function unreadable(
  file: string,
  { line, column }: Place,
  why: string,
  cause?: unknown,
): PatchbayError {
  return new PatchbayError(
    'invalid-config',
    `${file}:${line}:${column} cannot be read: ${why}. Mend it; the rest goes on without it.`,
    {
      source: file,
      details: { file, line, column },
      ...(cause === undefined ? {} : { cause }),
    },
  );
}
