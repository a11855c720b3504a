import {
  isSchemaObject,
  pointerSteps,
  resolveLocal,
  type SchemaNode,
  type SchemaObject,
} from './local-reference.ts';

/** Where the values are names, not keywords. */
const MAPS = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);
/** Where the value is data, not a schema. */
const DATA = new Set(['default', 'const', 'enum', 'examples', 'required', 'type']);
const DEFINITIONS = ['$defs', 'definitions'];
/** After so many nodes, references are no longer followed: a few lines can describe millions of them. */
const MAX_NODES = 1500;
/** Providers refuse deeper ones anyway. */
const MAX_DEPTH = 60;

export interface ResolveOptions {
  readonly inline: boolean;
  readonly constAsEnum: boolean;
  readonly note: (text: string) => void;
}

/** A copy in which no reference leads nowhere, and none is left with `inline`. `root` is what pointers start from. */
export function resolveReferences(
  schema: SchemaObject,
  root: SchemaNode,
  options: ResolveOptions,
): SchemaObject {
  let nodes = 0;

  const walk = (node: SchemaNode, open: readonly string[], depth: number): SchemaNode => {
    nodes++;
    if (depth > MAX_DEPTH) {
      options.note(`It is more than ${MAX_DEPTH} levels deep; the rest is shown as open.`);
      return {};
    }
    if (Array.isArray(node)) return node.map((each) => walk(each, open, depth + 1));
    if (!isSchemaObject(node)) return node;
    if (typeof node['$ref'] === 'string') return follow(node, node['$ref'], open, depth);
    return members(node, open, depth);
  };

  const members = (node: SchemaObject, open: readonly string[], depth: number): SchemaObject => {
    const entries: [string, SchemaNode][] = [];
    for (const key of Object.keys(node)) {
      const value = node[key];
      if (options.inline && DEFINITIONS.includes(key)) continue;
      if (options.constAsEnum && key === 'const') {
        if (!('enum' in node)) entries.push(['enum', [value]]);
      } else if (DATA.has(key)) entries.push([key, value]);
      else if (MAPS.has(key) && isSchemaObject(value))
        entries.push([key, named(value, open, depth)]);
      else entries.push([key, walk(value, open, depth + 1)]);
    }
    return Object.fromEntries(entries);
  };

  const named = (map: SchemaObject, open: readonly string[], depth: number): SchemaObject => {
    const entries: [string, SchemaNode][] = [];
    for (const name of Object.keys(map)) entries.push([name, walk(map[name], open, depth + 1)]);
    return Object.fromEntries(entries);
  };

  const follow = (
    node: SchemaObject,
    reference: string,
    open: readonly string[],
    depth: number,
  ): SchemaNode => {
    const { $ref: _, ...siblings } = node;
    const own = members(siblings, open, depth);
    const target = resolveLocal(root, reference);
    if (target === undefined) {
      options.note(`The reference ${reference} leads nowhere in the schema; it is shown as open.`);
      return own;
    }
    if (!options.inline && staysValid(reference)) return { $ref: reference, ...own };
    const cut = (why: string) => {
      options.note(why);
      const type = isSchemaObject(target) ? target['type'] : undefined;
      return { type: typeof type === 'string' ? type : 'object', ...own };
    };
    if (open.includes(reference))
      return cut(`${reference} contains itself; it is cut at an open object.`);
    if (nodes > MAX_NODES)
      return cut('It is too large when written out; the rest is shown as open.');
    const inlined = walk(target, [...open, reference], depth + 1);
    return isSchemaObject(inlined) ? { ...inlined, ...own } : { ...own };
  };

  return members(schema, [], 0);
}

/**
 * Whether {@link resolveReferences} would only copy a schema: there is no reference in it, and nothing that the options
 * change. Of most schemas that is so, and it is found without making anything.
 */
export function hasNothingToResolve(
  schema: SchemaObject,
  options: Pick<ResolveOptions, 'inline' | 'constAsEnum'>,
): boolean {
  const isPlain = (node: SchemaNode, depth: number): boolean => {
    if (typeof node !== 'object' || node === null) return true;
    if (depth > MAX_DEPTH) return false;
    if (Array.isArray(node)) return node.every((each) => isPlain(each, depth + 1));
    const object = node as SchemaObject;
    if (typeof object['$ref'] === 'string') return false;
    for (const key of Object.keys(object)) {
      if (options.constAsEnum && key === 'const') return false;
      if (options.inline && DEFINITIONS.includes(key)) return false;
      if (DATA.has(key)) continue;
      const value = object[key];
      const isMap = MAPS.has(key) && isSchemaObject(value);
      if (!(isMap ? areAllPlain(value, depth + 1) : isPlain(value, depth + 1))) return false;
    }
    return true;
  };
  const areAllPlain = (map: SchemaObject, depth: number): boolean => {
    for (const name of Object.keys(map)) if (!isPlain(map[name], depth)) return false;
    return true;
  };
  return isPlain(schema, 0);
}

/** Whether a reference still leads to the same place after the top was rewritten. */
function staysValid(reference: string): boolean {
  const first = pointerSteps(reference)?.[0];
  return first === undefined || first === 'properties' || DEFINITIONS.includes(first);
}
