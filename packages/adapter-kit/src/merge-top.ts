import {
  isSchemaObject,
  resolveLocal,
  type SchemaNode,
  type SchemaObject,
} from './local-reference.ts';

const COMPOSITION = [
  'allOf',
  'anyOf',
  'oneOf',
  'if',
  'then',
  'else',
  'not',
  'enum',
  'const',
  '$ref',
];
const MAX_DEPTH = 8;

interface Shape {
  readonly properties: SchemaObject;
  readonly required: readonly string[];
  /** Whether further properties are refused. */
  readonly closed: boolean;
}

const OPEN: Shape = { properties: {}, required: [], closed: false };

/**
 * The schema with an object at the top and no composition there: the properties of all branches, and as required what
 * every branch requires. Providers drop or refuse a tool whose schema begins with `anyOf`, `oneOf`, `allOf` or `$ref`.
 */
export function mergeTop(schema: SchemaNode, note: (text: string) => void): SchemaObject {
  if (!isSchemaObject(schema)) {
    note('It is no object.');
    return { type: 'object' };
  }
  if (!isObjectType(schema))
    note(`Its type is ${JSON.stringify(schema['type'])}; arguments are an object.`);
  const rest = Object.fromEntries(
    Object.entries(schema).filter(([key]) => !COMPOSITION.includes(key)),
  );
  if (!COMPOSITION.some((key) => key in schema)) return { ...rest, type: 'object' };
  const { properties, required, closed } = shapeOf(schema, schema, 0);
  const described = isSchemaObject(resolveLocal(schema, schema['$ref']))
    ? (resolveLocal(schema, schema['$ref']) as SchemaObject)['description']
    : undefined;
  return {
    ...(typeof described === 'string' ? { description: described } : {}),
    ...rest,
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    ...(closed ? { additionalProperties: false } : {}),
  };
}

/** Whether {@link mergeTop} leaves a schema as it is. */
export function isMergedTop(schema: SchemaNode): schema is SchemaObject {
  if (!isSchemaObject(schema) || schema['type'] !== 'object') return false;
  for (const key of COMPOSITION) if (key in schema) return false;
  return true;
}

function shapeOf(node: SchemaNode, root: SchemaNode, depth: number): Shape {
  if (!isSchemaObject(node) || depth > MAX_DEPTH) return OPEN;
  let shape: Shape = {
    properties: isSchemaObject(node['properties']) ? node['properties'] : {},
    required: Array.isArray(node['required'])
      ? node['required'].filter((key) => typeof key === 'string')
      : [],
    closed: node['additionalProperties'] === false,
  };
  const inner = (each: SchemaNode) => shapeOf(each, root, depth + 1);
  if (node['$ref'] !== undefined) shape = both(shape, inner(resolveLocal(root, node['$ref'])));
  for (const branch of list(node['allOf'])) shape = both(shape, inner(branch));
  for (const branches of [list(node['anyOf']), list(node['oneOf'])]) {
    const objects = branches.filter((branch) => isObjectType(branch)).map(inner);
    if (objects.length > 0) shape = both(shape, objects.reduce(either));
  }
  for (const branch of [node['then'], node['else']]) {
    shape = both(shape, { ...inner(branch), required: [], closed: false });
  }
  return shape;
}

/** Both hold. */
function both(a: Shape, b: Shape): Shape {
  return {
    properties: joined(a.properties, b.properties, 'allOf'),
    required: [...new Set([...a.required, ...b.required])],
    closed: a.closed || b.closed,
  };
}

/** One of the two holds. */
function either(a: Shape, b: Shape): Shape {
  return {
    properties: joined(a.properties, b.properties, 'anyOf'),
    required: a.required.filter((key) => b.required.includes(key)),
    closed: a.closed && b.closed,
  };
}

function joined(a: SchemaObject, b: SchemaObject, how: 'allOf' | 'anyOf'): SchemaObject {
  const properties = new Map(Object.entries(a));
  for (const [key, schema] of Object.entries(b)) {
    const before = properties.get(key);
    const known = properties.has(key) ? alternatives(before, how) : [];
    if (known.length === 0) properties.set(key, schema);
    else if (!known.some((each) => JSON.stringify(each) === JSON.stringify(schema)))
      properties.set(key, { [how]: [...known, schema] });
  }
  return Object.fromEntries(properties);
}

/** The members of a composition that {@link joined} made, else the schema itself. */
function alternatives(schema: SchemaNode, how: 'allOf' | 'anyOf'): readonly SchemaNode[] {
  const only = isSchemaObject(schema) && Object.keys(schema).length === 1;
  return only && Array.isArray(schema[how]) ? schema[how] : [schema];
}

function isObjectType(node: SchemaNode): boolean {
  if (!isSchemaObject(node)) return node === true;
  const { type } = node;
  return (
    type === undefined || type === 'object' || (Array.isArray(type) && type.includes('object'))
  );
}

function list(node: SchemaNode): readonly SchemaNode[] {
  return Array.isArray(node) ? node : [];
}
