import type { JsonSchema } from '@patchbay/protocols';

import { isSchemaObject, type SchemaObject } from './local-reference.ts';
import { isMergedTop, mergeTop } from './merge-top.ts';
import { hasNothingToResolve, resolveReferences } from './resolve-references.ts';
import { makeStrict } from './strict-schema.ts';

/** What a provider accepts. */
export interface ProviderSchemaOptions {
  /**
   * `keep` (default): local references stay, `$defs` too. `inline`: none is left; recursion ends in an open object.
   * References that leave the schema or lead nowhere become an open schema in both.
   */
  readonly references?: 'keep' | 'inline';
  /** `const: x` becomes `enum: [x]`, for providers that drop `const`. */
  readonly constAsEnum?: boolean;
  /**
   * Every object closed, every property required, optional ones nullable (OpenAI "structured outputs"). What cannot be
   * said so (an open map, a pattern) is left as it is, and the answer's `strict` is false. Implies `inline`.
   */
  readonly strict?: boolean;
}

/** The face of a schema: what a provider is shown. Arguments are checked against the original. */
export interface ProviderSchema {
  /**
   * Always an object schema at the top, without a composition there. Frozen. What lies in it may be the original's, so it
   * is to be left as it is.
   */
  readonly schema: JsonSchema & { readonly type: 'object' };
  /** Whether it is written for a provider's strict mode. */
  readonly strict: boolean;
  /** What could not be shown as written, for people. */
  readonly notes: readonly string[];
}

/** Makes faces. The same schema object and options give the same face object. */
export type ProviderSchemas = (
  schema: JsonSchema,
  options?: ProviderSchemaOptions,
) => ProviderSchema;

/** A {@link ProviderSchemas} with a cache of its own. */
export function createProviderSchemas(): ProviderSchemas {
  const caches = new Map<string, WeakMap<JsonSchema, ProviderSchema>>();
  return (schema, options = {}) => {
    if (!isSchemaObject(schema)) return providerSchema(schema, options);
    const { references = 'keep', constAsEnum = false, strict = false } = options;
    const key = `${references} ${constAsEnum} ${strict}`;
    let faces = caches.get(key);
    if (faces === undefined) caches.set(key, (faces = new WeakMap()));
    let face = faces.get(schema);
    if (face === undefined) faces.set(schema, (face = providerSchema(schema, options)));
    return face;
  };
}

/** The face of one schema, made anew. Never throws, whatever the schema is. */
export function providerSchema(
  schema: JsonSchema,
  options: ProviderSchemaOptions = {},
): ProviderSchema {
  const notes = new Set<string>();
  const note = (text: string) => void notes.add(text);
  try {
    const inline = options.references === 'inline' || options.strict === true;
    const constAsEnum = options.constAsEnum === true;
    const isAsWritten = isMergedTop(schema) && hasNothingToResolve(schema, { inline, constAsEnum });
    const resolved = isAsWritten
      ? schema
      : resolveReferences(mergeTop(schema, note), schema, { inline, constAsEnum, note });
    const open = closeEmpty(resolved);
    const strict = options.strict === true ? makeStrict(open) : undefined;
    if (options.strict === true && strict === undefined)
      note('It has a part that strict mode cannot express, so it is shown without strict mode.');
    return finished(strict ?? open, strict !== undefined, notes);
  } catch (error) {
    note(`It cannot be shown: ${error instanceof Error ? error.message : String(error)}.`);
    return finished({ type: 'object', properties: {}, additionalProperties: true }, false, notes);
  }
}

function finished(
  schema: SchemaObject,
  strict: boolean,
  notes: ReadonlySet<string>,
): ProviderSchema {
  return Object.freeze({
    schema: Object.freeze({ ...schema, type: 'object' as const }),
    strict,
    notes: Object.freeze([...notes]),
  });
}

/** A tool without arguments says so: providers want `properties`, strict ones a closed object. */
function closeEmpty(schema: SchemaObject): SchemaObject {
  const open = 'additionalProperties' in schema || 'patternProperties' in schema;
  const { properties } = schema;
  if (isSchemaObject(properties) && (open || Object.keys(properties).length > 0)) return schema;
  return { ...schema, properties: {}, ...(open ? {} : { additionalProperties: false }) };
}
