import type { ToolDefinition } from '@patchbay/protocols';

/** Which of a server's tools are offered: its own names, `*` matches any run of characters. `exclude` wins. */
export interface ToolFilter {
  readonly include?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
}

/** Definitions that pass, in which an unchanged one is the object of before, so that nothing made from it is made again. */
export function keepDefinitions(
  before: readonly ToolDefinition[],
  now: readonly ToolDefinition[],
  filter: ToolFilter,
): readonly ToolDefinition[] {
  const known = new Map(before.map((definition) => [definition.name, definition]));
  const seen = new Set<string>();
  return now.flatMap((definition) => {
    const { name } = definition;
    if (seen.has(name) || !passes(filter, name)) return [];
    seen.add(name);
    const old = known.get(name);
    return old !== undefined && canonical(old) === canonical(definition) ? [old] : [definition];
  });
}

/** Whether a tool of this name is offered. */
export function passes({ include, exclude }: ToolFilter, name: string): boolean {
  if (include !== undefined && !include.some((pattern) => matches(pattern, name))) return false;
  return exclude === undefined || !exclude.some((pattern) => matches(pattern, name));
}

function matches(pattern: string, name: string): boolean {
  const literal = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${pattern.split('*').map(literal).join('.*')}$`, 's').test(name);
}

/** The same text for the same definition, whatever the order of its keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item !== 'object' || item === null || Array.isArray(item)) return item;
    return Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}
