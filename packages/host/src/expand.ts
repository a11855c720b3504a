/** Where the values of placeholders come from. */
export interface Values {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `${input:id}`: asked for by VS Code's configuration; `undefined` if nobody answers. */
  readonly input: (id: string) => string | undefined;
}

/** An expanded text, or the placeholders that nothing stands for. */
export type Expanded = { readonly text: string } | { readonly missing: readonly string[] };

/**
 * Replaces placeholders in one pass: `${VAR}`, `${env:VAR}`, `${VAR:-default}` (the default also stands for an empty
 * value, as in a shell, and may hold placeholders itself) and `${input:id}`. Values are text: they are not looked at
 * again. `$${` is a literal `${`. Everything else (`$HOME`, `%APPDATA%`, `${V-d}`, an unclosed `${`) stays as written, on
 * every system.
 */
export function expand(text: string, values: Values): Expanded {
  const missing: string[] = [];
  const { out } = readText(text, 0, false, values, missing);
  return missing.length > 0 ? { missing } : { text: out };
}

/** The ids of `${input:…}` placeholders in a text, so that they can be asked for before it is expanded. */
export function inputsIn(text: string): readonly string[] {
  return [...text.matchAll(/\$\{input:([^}]+)\}/g)].map(([, id = '']) => id);
}

interface Read {
  readonly out: string;
  readonly end: number;
}

/** Reads until the end, or, inside a default, until the `}` that closes it. */
function readText(
  text: string,
  from: number,
  inside: boolean,
  values: Values,
  missing: string[],
): Read {
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
      ? readPlaceholder(text, at, values, missing)
      : undefined;
    out += placeholder?.out ?? text[at]!;
    at = placeholder?.end ?? at + 1;
  }
  return { out, end: at };
}

/** `undefined` if what begins at `at` is no placeholder. `end` is behind its `}`. */
function readPlaceholder(
  text: string,
  at: number,
  values: Values,
  missing: string[],
): Read | undefined {
  const head = /^\$\{(env:|input:)?([^}$:]+)(:-|\})/.exec(text.slice(at));
  if (head === null) return undefined;
  const [whole, kind, name = '', mark] = head;
  if (kind !== 'input:' && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return undefined;
  const value = kind === 'input:' ? values.input(name) : ownValue(values.env, name);
  const end = at + whole.length;
  if (mark === '}') {
    if (value === undefined) missing.push(kind === 'input:' ? `input:${name}` : name);
    return { out: value ?? '', end };
  }
  // A default that is not needed is read all the same, to find its end; what it lacks does not matter then.
  const needed = value === undefined || value === '';
  const fallback = readText(text, end, true, values, needed ? missing : []);
  if (text[fallback.end] !== '}') return undefined;
  return { out: needed ? fallback.out : value, end: fallback.end + 1 };
}

function ownValue(env: Values['env'], name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}
