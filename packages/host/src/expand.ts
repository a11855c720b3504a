import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, resolve, sep } from 'node:path';

/** Where the values of placeholders come from. */
export interface Values {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `${input:id}`; `undefined` if nobody answers. */
  readonly input: (id: string) => Promise<string | undefined>;
  /** The folder of the project: `${workspaceFolder}`, and where `{file:…}` is meant from. */
  readonly folder: string;
}

/** An expanded text, or the placeholders that nothing stands for. */
export type Expanded = { readonly text: string } | { readonly missing: readonly string[] };

/** Which placeholders a text may hold: what they mean belongs to the file that they stand in. */
export type Placeholders = 'shell' | 'opencode';

/**
 * Replaces placeholders in one pass. Values are text: they are not looked at again, and no shell sees them.
 *
 * `shell`: `${VAR}`, `${env:VAR}`, `${VAR:-default}` (the default also stands for an empty value, as in a shell, and may
 * hold placeholders itself), `${input:id}`, and what editors know (`${workspaceFolder}`, `${workspaceFolderBasename}`,
 * `${userHome}`, `${pathSeparator}`), unless a variable has that name. `$${` is a literal `${`. Everything else (`$HOME`,
 * `%APPDATA%`, `${V-d}`, an unclosed `${`) stays as written, on every system.
 *
 * `opencode`: `{env:VAR}` and `{file:path}` (the content of a file, without the line end at its end).
 */
export async function expand(
  text: string,
  values: Values,
  placeholders: Placeholders = 'shell',
): Promise<Expanded> {
  const missing: string[] = [];
  const out =
    placeholders === 'shell'
      ? (await readText(text, 0, false, values, missing)).out
      : await expandBraces(text, values, missing);
  return missing.length > 0 ? { missing } : { text: out };
}

interface Read {
  readonly out: string;
  readonly end: number;
}

/** Reads until the end, or, inside a default, until the `}` that closes it. `missing` is absent where nothing is needed. */
async function readText(
  text: string,
  from: number,
  inside: boolean,
  values: Values,
  missing: string[] | undefined,
): Promise<Read> {
  let out = '';
  let at = from;
  while (at < text.length) {
    if (inside && text[at] === '}') return { out, end: at };
    if (text.startsWith('$${', at)) {
      out += '${';
      at += 3;
      continue;
    }
    const placeholder = text.startsWith('${', at)
      ? await readPlaceholder(text, at, values, missing)
      : undefined;
    out += placeholder?.out ?? text[at]!;
    at = placeholder?.end ?? at + 1;
  }
  return { out, end: at };
}

/** `undefined` if what begins at `at` is no placeholder. `end` is behind its `}`. */
async function readPlaceholder(
  text: string,
  at: number,
  values: Values,
  missing: string[] | undefined,
): Promise<Read | undefined> {
  const head = /^\$\{(env:|input:)?([^}$:]+)(:-|\})/.exec(text.slice(at));
  if (head === null) return undefined;
  const [whole, kind, name = '', mark] = head;
  if (kind !== 'input:' && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return undefined;
  // In a default that is not needed nobody is asked for anything.
  const value =
    missing === undefined
      ? ''
      : kind === 'input:'
        ? await values.input(name)
        : variable(name, values, kind === undefined);
  const end = at + whole.length;
  if (mark === '}') {
    if (value === undefined) missing?.push(kind === 'input:' ? `input:${name}` : name);
    return { out: value ?? '', end };
  }
  // A default that is not needed is read all the same, to find its end; what it lacks does not matter then.
  const needed = value === undefined || value === '';
  const fallback = await readText(text, end, true, values, needed ? missing : undefined);
  if (text[fallback.end] !== '}') return undefined;
  return { out: needed ? fallback.out : value, end: fallback.end + 1 };
}

async function expandBraces(text: string, values: Values, missing: string[]): Promise<string> {
  let out = '';
  let at = 0;
  for (const match of text.matchAll(/\{(env|file):([^{}]+)\}/g)) {
    const [whole, kind, name = ''] = match;
    const value = kind === 'env' ? variable(name, values, false) : await content(name, values);
    if (value === undefined) missing.push(kind === 'env' ? name : `the file ${name}`);
    out += text.slice(at, match.index) + (value ?? '');
    at = match.index + whole.length;
  }
  return out + text.slice(at);
}

function variable(name: string, { env, folder }: Values, editors: boolean): string | undefined {
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value !== undefined || !editors) return value;
  switch (name) {
    case 'workspaceFolder':
      return folder;
    case 'workspaceFolderBasename':
      return basename(folder);
    case 'userHome':
      return homedir();
    case 'pathSeparator':
      return sep;
    default:
      return undefined;
  }
}

async function content(path: string, { folder }: Values): Promise<string | undefined> {
  const file = resolve(
    folder,
    path.replace(/^~(?=[\\/])/, () => homedir()),
  );
  return readFile(file, 'utf8').then(
    (text) => text.replace(/\r?\n$/, ''),
    () => undefined,
  );
}
