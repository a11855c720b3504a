import type { JsonSchema } from '@patchbay/protocols';

import {
  isSchemaObject,
  resolveLocal,
  type SchemaNode,
  type SchemaObject,
} from './local-reference.ts';

/** What strict mode can say, of an inlined schema. Anything else that restricts makes the tool a non-strict one. */
const PLAIN = new Set([
  'type',
  'title',
  'description',
  'enum',
  'const',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'pattern',
]);
/** No restriction: left out where strict mode does not take them. The original is what arguments are checked against. */
const DROPPED = new Set([
  'default',
  'examples',
  'format',
  '$schema',
  '$id',
  '$comment',
  'deprecated',
  'readOnly',
  'writeOnly',
]);

/** In strict form; `undefined` if it cannot be said so. */
export function makeStrict(schema: SchemaNode): SchemaObject | undefined {
  if (!isSchemaObject(schema)) return undefined;
  const out = new Map<string, SchemaNode>();
  for (const [key, value] of Object.entries(schema)) {
    if (DROPPED.has(key) || ['properties', 'required', 'additionalProperties'].includes(key))
      continue;
    if (PLAIN.has(key)) out.set(key, value);
    else if (key === 'items') {
      const items = makeStrict(value);
      if (items === undefined) return undefined;
      out.set(key, items);
    } else if (key === 'anyOf' && Array.isArray(value)) {
      const branches = value.map(makeStrict);
      if (branches.includes(undefined)) return undefined;
      out.set(key, branches);
    } else if (key.startsWith('x-')) continue;
    else return undefined;
  }
  if (!mayBeObject(schema)) return says(schema) ? Object.fromEntries(out) : undefined;
  const object = strictObject(schema);
  return object === undefined ? undefined : { ...Object.fromEntries(out), ...object };
}

function strictObject(schema: SchemaObject): SchemaObject | undefined {
  const { properties, additionalProperties } = schema;
  const closed = additionalProperties === false;
  if (!isSchemaObject(properties)) return closed ? closedObject({}) : undefined;
  if (!closed && additionalProperties !== undefined) return undefined;
  if (!closed && Object.keys(properties).length === 0) return undefined;
  const strict = new Map<string, SchemaNode>();
  for (const [name, value] of Object.entries(properties)) {
    const each = makeStrict(value);
    if (each === undefined) return undefined;
    strict.set(name, isRequired(schema, name) ? each : nullable(each));
  }
  return closedObject(Object.fromEntries(strict));
}

function closedObject(properties: SchemaObject): SchemaObject {
  return { properties, required: Object.keys(properties), additionalProperties: false };
}

function nullable(schema: SchemaObject): SchemaObject {
  if (allowsNull(schema)) return schema;
  const { type } = schema;
  if (Array.isArray(schema['anyOf']) && type === undefined)
    return { ...schema, anyOf: [...schema['anyOf'], { type: 'null' }] };
  if (typeof type !== 'string' || 'const' in schema || type === 'object')
    return { anyOf: [schema, { type: 'null' }] };
  const values = Array.isArray(schema['enum']) ? { enum: [...schema['enum'], null] } : {};
  return { ...schema, type: [type, 'null'], ...values };
}

/**
 * Arguments as the tool's author expects them: without the `null`s that stand for "left out" in strict mode. Where the
 * original allows `null`, it stays. The arguments themselves are left as they are.
 */
export function withoutStrictNulls(schema: JsonSchema, args: unknown): unknown {
  return strip(schema, schema, args);
}

function strip(root: SchemaNode, node: SchemaNode, value: unknown): unknown {
  const schema =
    isSchemaObject(node) && node['$ref'] !== undefined ? resolveLocal(root, node['$ref']) : node;
  if (!isSchemaObject(schema)) return value;
  if (Array.isArray(value)) return value.map((each) => strip(root, schema['items'], each));
  const { properties } = schema;
  if (!isSchemaObject(value) || !isSchemaObject(properties)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
      const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
      const invented =
        each === null && own !== undefined && !isRequired(schema, name) && !allowsNull(own);
      return invented ? [] : [[name, strip(root, own, each)]];
    }),
  );
}

function allowsNull(schema: SchemaNode): boolean {
  if (!isSchemaObject(schema)) return schema === true;
  const { type, anyOf, oneOf } = schema;
  if ([type].flat().includes('null') || schema['const'] === null) return true;
  if (Array.isArray(schema['enum']) && type === undefined) return schema['enum'].includes(null);
  return [anyOf, oneOf].some((branches) => Array.isArray(branches) && branches.some(allowsNull));
}

function isRequired(schema: SchemaObject, name: string): boolean {
  return Array.isArray(schema['required']) && schema['required'].includes(name);
}

function mayBeObject(schema: SchemaObject): boolean {
  return [schema['type']].flat().includes('object') || 'properties' in schema;
}

/** Whether it says of what kind the value is: strict mode has no "anything". */
function says(schema: SchemaObject): boolean {
  return ['type', 'enum', 'const', 'anyOf'].some((key) => key in schema);
}
