import type { FrontmatterData, FrontmatterValue } from './yaml-entries.ts';

/**
 * A field under any of the ways in which its name is written: `allowed-tools`, `allowed_tools`, `allowedTools`.
 * The exact name first.
 */
export function field(data: FrontmatterData, name: string): FrontmatterValue | undefined {
  const exact = data[name];
  if (exact !== undefined) return exact;
  for (const known of Object.keys(data)) if (areAlike(known, name)) return data[known];
  return undefined;
}

/** A field as text; a list is joined by spaces. `undefined` for a map, for nothing and for blank text. */
export function textField(data: FrontmatterData, name: string): string | undefined {
  const value = field(data, name);
  const text = Array.isArray(value)
    ? value.filter((item) => typeof item === 'string').join(' ')
    : value;
  if (typeof text !== 'string' || text.trim() === '') return undefined;
  return text.trim();
}

/** `true`, `yes`, `on` and `1` in any case; `undefined` if the field is not there. */
export function booleanField(data: FrontmatterData, name: string): boolean | undefined {
  const value = field(data, name);
  return typeof value === 'string' ? /^\s*(?:true|yes|on|1)\s*$/i.test(value) : undefined;
}

/**
 * A list in any of the written forms: a YAML list, or text split at commas and white space outside of brackets, so that
 * `Bash(git add *), Read` is two. `undefined` if the field is not there.
 */
export function listField(data: FrontmatterData, name: string): readonly string[] | undefined {
  const value = field(data, name);
  return value === undefined ? undefined : splitList(value);
}

function splitList(value: FrontmatterValue): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(splitList);
  if (typeof value !== 'string') return [];
  const items: string[] = [];
  let depth = 0;
  let item = '';
  for (const c of value.replace(/^\s*\[([\s\S]*)\]\s*$/, '$1')) {
    if (c === '(') depth++;
    if (c === ')') depth = Math.max(0, depth - 1);
    if (depth > 0 || !/[\s,]/.test(c)) {
      item += c;
      continue;
    }
    if (item !== '') items.push(item);
    item = '';
  }
  if (item !== '') items.push(item);
  return items
    .map((text) => text.replaceAll(/^["']|["']$/g, ''))
    .filter((text) => text !== '' && text !== '-');
}

/** Whether two names differ by case, `-` and `_` alone. Called often, so nothing is made for it. */
function areAlike(a: string, b: string): boolean {
  for (let i = 0, j = 0; ; i++, j++) {
    while (a[i] === '-' || a[i] === '_') i++;
    while (b[j] === '-' || b[j] === '_') j++;
    if (a[i]?.toLowerCase() !== b[j]?.toLowerCase()) return false;
    if (a[i] === undefined) return true;
  }
}
