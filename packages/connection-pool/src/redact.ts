import { PatchbayError, type ServerConfig } from '@patchbay/protocols';

import { isHttp, isStdio } from './connection-key.ts';

/** Shorter values are no secrets, and would black out half of every text. */
const MIN_LENGTH = 6;
/** How far causes of causes are looked at. */
const MAX_DEPTH = 8;

export type Redact = (text: string) => string;

/** Blacks out configured values (environment, headers, query of the URL) in text that is shown: a stderr tail, an error. */
export function makeRedactor(
  config: ServerConfig,
  headers: Readonly<Record<string, string>>,
  /** Further ones, as they are then. */
  more: () => readonly string[] = () => [],
): Redact {
  const environment = isStdio(config) ? Object.values(config.env ?? {}) : [];
  const { search, searchParams } = new URL(isHttp(config) ? config.url : 'http://none');
  const query = [
    ...searchParams.values(),
    ...search.split('&').map((pair) => pair.slice(pair.indexOf('=') + 1)),
  ];
  const tokens = Object.values(headers).flatMap((value) => [value, value.replace(/^\w+\s+/, '')]);
  const configured = written([...environment, ...query, ...tokens]);
  return (text) =>
    [...configured, ...written(more())].reduce(
      (shown, secret) => shown.replaceAll(secret, '***'),
      text,
    );
}

/** Secrets as they may stand in a text, the longest first. */
function written(secrets: readonly string[]): readonly string[] {
  const forms = secrets.flatMap((value) => [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value),
  ]);
  return [...new Set(forms)]
    .filter((value) => value.length >= MIN_LENGTH)
    .toSorted((a, b) => b.length - a.length);
}

/** The same, with every text in it redacted: a log shows an error with all that it carries along. */
export function redacted<T>(value: T, redact: Redact): T {
  return copy(value, redact, 0) as T;
}

function copy(value: unknown, redact: Redact, depth: number): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value;
  const inner = (one: unknown) => copy(one, redact, depth + 1);
  if (Array.isArray(value)) return value.map(inner);
  const own = Object.getOwnPropertyNames(value).map((name) => [
    name,
    inner((value as Readonly<Record<string, unknown>>)[name]),
  ]);
  const fields = Object.fromEntries(own) as Record<string, unknown>;
  if (!(value instanceof Error || PatchbayError.isInstance(value))) {
    const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(value) as null);
    return isPlain ? fields : value;
  }
  const error: Error = Object.setPrototypeOf(new Error(), Object.getPrototypeOf(value) as object);
  for (const [name, field] of Object.entries(fields)) {
    const enumerable = Object.getOwnPropertyDescriptor(value, name)?.enumerable === true;
    Object.defineProperty(error, name, {
      value: field,
      enumerable,
      writable: true,
      configurable: true,
    });
  }
  return error;
}
