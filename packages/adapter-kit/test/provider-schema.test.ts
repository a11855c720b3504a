import { readFileSync } from 'node:fs';

import type { JsonSchema } from '@patchbay/protocols';
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';

import { createProviderSchemas, providerSchema, withoutStrictNulls } from '../src/index.ts';

const fixture = (name: string) =>
  JSON.parse(readFileSync(new URL(`fixtures/${name}`, import.meta.url), 'utf8')) as Readonly<
    Record<string, JsonSchema>
  >;
const face = (schema: unknown, options: Parameters<typeof providerSchema>[1] = {}) =>
  providerSchema(schema as JsonSchema, options).schema;

describe('the face of a schema', () => {
  it('is an object at the top, whatever the schema is', () => {
    for (const schema of [
      undefined,
      null,
      true,
      [],
      'x',
      { type: 'string' },
      { type: ['object', 'null'] },
      {},
    ]) {
      expect(face(schema)).toMatchObject({ type: 'object', properties: {} });
    }
    expect(providerSchema({ type: 'string' }).notes).not.toEqual([]);
  });

  it('merges alternatives at the top: all properties, and as required what all of them require', () => {
    const branch = (k: string, ...required: string[]) => ({
      properties: { kind: { const: k }, [k]: { type: 'string' } },
      required: ['kind', ...required],
    });
    expect(
      face({ type: 'object', description: 'One of two.', oneOf: [branch('a', 'a'), branch('b')] }),
    ).toEqual({
      type: 'object',
      description: 'One of two.',
      properties: {
        kind: { anyOf: [{ const: 'a' }, { const: 'b' }] },
        a: { type: 'string' },
        b: { type: 'string' },
      },
      required: ['kind'],
    });
    expect(
      face({
        anyOf: [branch('a'), { type: 'null' }, { $ref: '#/$defs/B' }],
        $defs: { B: branch('b') },
      }),
    ).toMatchObject({
      properties: { a: {}, b: {} },
      required: ['kind'],
    });
  });

  it('joins what must hold together at the top, and what a reference there means', () => {
    expect(
      face({
        allOf: [
          { properties: { a: {} }, required: ['a'] },
          { properties: { b: {} }, required: ['b'], additionalProperties: false },
        ],
      }),
    ).toEqual({
      type: 'object',
      properties: { a: {}, b: {} },
      required: ['a', 'b'],
      additionalProperties: false,
    });
    expect(
      face({
        $ref: '#/$defs/Args',
        $defs: { Args: { type: 'object', description: 'Args.', properties: { a: {} } } },
      }),
    ).toMatchObject({
      type: 'object',
      description: 'Args.',
      properties: { a: {} },
    });
    const conditional =
      '{"properties":{"a":{}},"if":{"required":["a"]},"then":{"properties":{"b":{}},"required":["b"]}}';
    expect(face(JSON.parse(conditional))).toEqual({
      type: 'object',
      properties: { a: {}, b: {} },
    });
  });

  it('keeps local references, and opens those that lead nowhere', () => {
    const $defs = { X: { type: 'string' } };
    const { schema, notes } = providerSchema({
      type: 'object',
      properties: { a: { $ref: '#/$defs/X' }, b: { $ref: '#/$defs/Y', description: 'b' } },
      $defs,
    });
    expect(schema).toEqual({
      type: 'object',
      properties: { a: { $ref: '#/$defs/X' }, b: { description: 'b' } },
      $defs,
    });
    expect(notes).toHaveLength(1);
  });

  it('turns one value into a list of one where that is wanted', () => {
    expect(face({ properties: { const: { const: 1 } } }, { constAsEnum: true })).toMatchObject({
      properties: { const: { enum: [1] } },
    });
  });

  it('is the same object for the same schema and options', () => {
    const schemas = createProviderSchemas();
    const schema = { type: 'object' };
    expect(schemas(schema)).toBe(schemas(schema, {}));
    expect(schemas(schema, { references: 'inline' })).not.toBe(schemas(schema));
    expect(schemas({ type: 'object' })).not.toBe(schemas(schema));
  });

  it('never throws, ends, stays small and leaves the schema alone, for any JSON', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom('keep' as const, 'inline' as const),
        fc.boolean(),
        (schema, references, strict) => {
          const before = JSON.stringify(schema);
          const shown = providerSchema(schema as never, { references, strict }).schema;
          expect(shown.type).toBe('object');
          expect(JSON.stringify(schema)).toBe(before);
        },
      ),
      { numRuns: 300, verbose: fc.VerbosityLevel.Verbose },
    );
    let deep: object = { type: 'string' };
    for (let i = 0; i < 5000; i++) deep = { type: 'array', items: deep };
    expect(face({ properties: { deep } }).type).toBe('object');
  });
});

describe('gemini-cli-13326: schemas with references', () => {
  const refs = fixture('refs.json');
  const inlined = (name: string) => providerSchema(refs[name]!, { references: 'inline' });
  const properties = (name: string) =>
    inlined(name).schema['properties'] as Readonly<Record<string, unknown>>;

  it.each(Object.keys(refs))('%s has no reference left and is small', (name) => {
    const fetched = vi.spyOn(globalThis, 'fetch');
    const { schema } = inlined(name);
    expect(keysOf(schema)).not.toContain('$ref');
    expect(keysOf(schema)).not.toContain('$defs');
    expect(keysOf(schema)).not.toContain('definitions');
    expect(JSON.stringify(schema).length).toBeLessThan(100_000);
    expect(fetched).not.toHaveBeenCalled();
    fetched.mockRestore();
  });

  it('the inlined parts are their definitions, siblings win', () => {
    const kind = { type: 'string', enum: ['a', 'b'] };
    expect(properties('defs-anyof')).toEqual({
      target: {
        anyOf: [{ type: 'string' }, { type: 'object', properties: { kind }, required: ['kind'] }],
      },
    });
    expect(properties('definitions-old')).toEqual({ d: { type: 'integer' } });
    expect(properties('escaped')).toEqual({ p: { type: 'boolean' } });
    expect(properties('siblings')).toEqual({
      external: {
        type: 'object',
        description: 'who',
        default: { name: 'x' },
        properties: { name: { type: 'string' } },
        required: ['name'],
      },
    });
  });

  it('items that refer to a property are kept', () => {
    expect(properties('ref-to-properties')['actions']).toEqual({
      type: 'array',
      items: { type: 'object' },
    });
  });

  it('recursion ends in an open object', () => {
    expect(properties('recursive')).toEqual({
      root: {
        type: 'object',
        properties: {
          value: { type: 'string' },
          children: { type: 'array', items: { type: 'object' } },
        },
      },
    });
    expect(properties('self-root')['next']).toMatchObject({ type: 'object' });
    expect(inlined('ref-bomb').notes).toEqual([expect.stringContaining('too large')]);
  });

  it('what is elsewhere or missing is open, and told', () => {
    expect(properties('external')).toEqual({ e: {} });
    expect(properties('missing')).toEqual({ m: {}, okField: { type: 'string' } });
    for (const name of ['external', 'missing'])
      expect(inlined(name).notes).toEqual([expect.stringContaining('leads nowhere')]);
  });
});

describe('opencode-45245: providers with a strict mode', () => {
  const objects = fixture('objects.json');

  it.each(['bare', 'onlyType'])('a tool without arguments says so: %s', (name) => {
    expect(face(objects[name])).toEqual({
      type: 'object',
      properties: {},
      additionalProperties: false,
    });
    expect(face(objects[name], { strict: true })).toEqual({
      type: 'object',
      properties: {},
      required: [],
      additionalProperties: false,
    });
  });

  it.each(['optionalOnly', 'nestedOptional', 'defaults'])(
    'strict: every property is required, optional ones are nullable: %s',
    (name) => {
      const { schema, strict } = providerSchema(objects[name]!, { strict: true });
      expect(strict).toBe(true);
      for (const object of objectsOf(schema)) {
        expect(object['required']).toEqual(Object.keys(object['properties'] as object));
        expect(object['additionalProperties']).toBe(false);
      }
      expect(JSON.stringify(schema)).toContain('"null"');
    },
  );

  it.each(['openMap', 'typedMap', 'emptyAdditional', 'pattern', 'freeForm'])(
    'strict is off where it cannot be said: %s',
    (name) => {
      const shown = providerSchema(objects[name]!, { strict: true });
      expect(shown.strict).toBe(false);
      expect(shown.schema).toEqual(face(objects[name]));
      expect(shown.notes).toEqual([expect.stringContaining('strict mode cannot express')]);
    },
  );

  it.each(Object.keys(objects).filter((name) => !['bare', 'onlyType'].includes(name)))(
    'normal: nothing is invented, open maps stay open: %s',
    (name) => {
      expect(face(objects[name])).toEqual({ properties: {}, ...objects[name] });
    },
  );

  it('the nulls of strict mode do not reach the server', () => {
    expect(withoutStrictNulls(objects['optionalOnly']!, { server: null })).toEqual({});
    expect(withoutStrictNulls(objects['nestedOptional']!, { opt: { a: 'x', b: null } })).toEqual({
      opt: { a: 'x' },
    });
    expect(withoutStrictNulls(objects['nestedOptional']!, { opt: null })).toEqual({});
  });

  it('nulls that the author allows, or that are not of strict mode, stay', () => {
    const schema = {
      type: 'object',
      properties: {
        a: { type: ['string', 'null'] },
        b: { type: 'string' },
        list: { type: 'array', items: { properties: { c: { type: 'number' } } } },
      },
      required: ['b'],
    };
    expect(
      withoutStrictNulls(schema, { a: null, b: null, list: [{ c: null }, null], d: null }),
    ).toEqual({ a: null, b: null, list: [{}, null], d: null });
  });
});

function keysOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => [key, ...keysOf(each)]);
}

function objectsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = 'properties' in value ? [value as Readonly<Record<string, unknown>>] : [];
  return [...own, ...Object.values(value).flatMap(objectsOf)];
}
