import type { ToolAnnotations, ToolDefinition } from '@patchbay/protocols';

type Hint = 'readOnlyHint' | 'destructiveHint' | 'idempotentHint' | 'openWorldHint';

/** Which of a server's tools are offered. */
export interface ToolFilter {
  /** Only these: the server's own names, `*` matches any run of characters. */
  readonly include?: readonly string[] | undefined;
  /** Not these; wins over `include`. */
  readonly exclude?: readonly string[] | undefined;
  /**
   * Only tools that claim all of this: `{ readOnlyHint: true }`. A claim that is missing counts as MCP says: not read-only,
   * destructive, not idempotent, open world. Claims are the server's own, and no security boundary.
   */
  readonly hints?: Readonly<Partial<Record<Hint, boolean>>> | undefined;
}

/** What a tool claims that claims nothing. (MCP "ToolAnnotations") */
const UNCLAIMED: Readonly<Record<Hint, boolean>> = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
};

/** Definitions that pass, in which an unchanged one is the object of before, so that nothing made from it is made again. */
export function keepDefinitions(
  before: readonly ToolDefinition[],
  now: readonly ToolDefinition[],
  filter: ToolFilter,
): readonly ToolDefinition[] {
  const known = new Map(before.map((definition) => [definition.name, definition]));
  const seen = new Set<string>();
  const kept: ToolDefinition[] = [];
  for (const definition of now) {
    const { name } = definition;
    if (seen.has(name) || !passes(filter, definition)) continue;
    seen.add(name);
    const old = known.get(name);
    kept.push(old !== undefined && canonical(old) === canonical(definition) ? old : definition);
  }
  return kept;
}

/** Whether a tool is offered. */
export function passes(filter: ToolFilter, { name, annotations }: ToolDefinition): boolean {
  return namePasses(filter, name) && hintsPass(filter, annotations);
}

/** Whether a tool of this name can be offered. */
export function namePasses({ include, exclude }: ToolFilter, name: string): boolean {
  if (include !== undefined && !include.some((pattern) => matches(pattern, name))) return false;
  return exclude === undefined || !exclude.some((pattern) => matches(pattern, name));
}

function hintsPass({ hints }: ToolFilter, annotations: ToolAnnotations = {}): boolean {
  if (hints === undefined) return true;
  const claims: Record<Hint, boolean> = { ...UNCLAIMED, ...annotations };
  // What only reads destroys nothing, and can be repeated.
  if (claims.readOnlyHint) {
    claims.destructiveHint = false;
    claims.idempotentHint = true;
  }
  return (Object.keys(UNCLAIMED) as Hint[]).every(
    (hint) => hints[hint] === undefined || hints[hint] === claims[hint],
  );
}

/** How two lists of tools differ, for people; `undefined` if they do not. */
export function difference(
  before: readonly ToolDefinition[],
  now: readonly ToolDefinition[],
): string | undefined {
  const [old, current] = [before, now].map(
    (list) => new Map(list.map((tool) => [tool.name, tool])),
  );
  const names = (what: string, list: readonly ToolDefinition[]) =>
    list.length === 0 ? [] : [`${what} ${list.map(({ name }) => JSON.stringify(name)).join(', ')}`];
  const parts = [
    ...names(
      'without',
      before.filter(({ name }) => !current!.has(name)),
    ),
    ...names(
      'also with',
      now.filter(({ name }) => !old!.has(name)),
    ),
    ...names(
      'otherwise',
      now.filter((tool) => {
        const known = old!.get(tool.name);
        return known !== undefined && canonical(known) !== canonical(tool);
      }),
    ),
  ];
  return parts.length === 0 ? undefined : parts.join(', ');
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
