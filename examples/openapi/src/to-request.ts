import { PatchbayError } from '@patchbay/protocols';

import type { Operation } from './operations.ts';

/** A call as a request. Arguments are data: none of them can lead to another path or host. */
export function toRequest(
  { definition, method, path, parameters }: Operation,
  baseUrl: string,
  args: Readonly<Record<string, unknown>>,
): {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
} {
  const headers: Record<string, string> = { accept: 'application/json, text/*' };
  const query = new URLSearchParams();
  let filled = path;
  for (const { name, in: place } of parameters) {
    const value = args[name];
    if (value === undefined) continue;
    if (place === 'path') filled = filled.replaceAll(`{${name}}`, () => segment(name, value));
    else if (place === 'header') headers[name] = text(value);
    else if (place === 'query') {
      for (const one of Array.isArray(value) ? value : [value]) query.append(name, text(one));
    }
  }
  if (filled.includes('{')) {
    throw new PatchbayError('invalid-arguments', `${definition.name} needs all of ${path}.`);
  }
  const url = new URL(baseUrl.replace(/\/$/u, '') + filled);
  url.search = query.toString();
  const { body } = args;
  if (body === undefined) return { url, method: method.toUpperCase(), headers };
  headers['content-type'] = 'application/json';
  return { url, method: method.toUpperCase(), headers, body: JSON.stringify(body) };
}

const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

function segment(name: string, value: unknown): string {
  const said = text(value);
  if (said !== '' && said !== '.' && said !== '..') return encodeURIComponent(said);
  throw new PatchbayError(
    'invalid-arguments',
    `${name} may not be "${said}": it is part of a path.`,
  );
}
