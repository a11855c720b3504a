import { readFileSync } from 'node:fs';

import type { JsonSchema, Problem } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { createArgumentValidator, providerSchema } from '../src/index.ts';

const lines = (schema: JsonSchema, args: unknown): readonly string[] => {
  const check = createArgumentValidator({ onProblem: () => undefined }).validate(schema, args);
  return check.ok ? [] : check.violations;
};
const of = (properties: object, more: object = {}): JsonSchema => ({
  type: 'object',
  properties,
  ...more,
});

describe('arguments', () => {
  it.each<[string, JsonSchema, unknown, readonly string[]]>([
    ['missing', of({}, { required: ['a', 'b'] }), { b: 1 }, ['a: missing, it is required']],
    [
      'of the wrong type',
      of({ a: { type: 'string' } }),
      { a: 5 },
      ['a: expected string, got the number 5'],
    ],
    [
      'of none of several types',
      of({ a: { type: ['string', 'null'] } }),
      { a: [1, 2] },
      ['a: expected string or null, got an array of 2'],
    ],
    [
      'not in a list',
      of({ a: { enum: ['x', 'y'] } }),
      { a: 'z' },
      ['a: expected one of ["x","y"], got the text "z"'],
    ],
    ['not the one value', of({ a: { const: 1 } }), { a: null }, ['a: expected 1, got null']],
    ['unknown', of({ a: {} }, { additionalProperties: false }), { b: 1 }, ['b: not allowed here']],
    ['out of range', of({ a: { minimum: 3 } }), { a: 2 }, ['a: 2 is less than 3.']],
    [
      'of the wrong form',
      of({ a: { pattern: '^x' } }),
      { a: 'y' },
      ['a: expected a text that matches ^x, got the text "y"'],
    ],
    [
      'of the wrong format',
      of({ a: { format: 'email' } }),
      { a: 'y' },
      ['a: expected the format email, got the text "y"'],
    ],
    [
      'deep inside, behind a reference',
      of(
        { a: { type: 'array', items: { $ref: '#/$defs/X' } } },
        { $defs: { X: of({ id: { type: 'integer' } }, { required: ['id'] }) } },
      ),
      { a: [{ id: 1 }, { id: 'q' }, {}, 7] },
      [
        'a[1].id: expected integer, got the text "q"',
        'a[2].id: missing, it is required',
        'a[3]: expected object, got the number 7',
      ],
    ],
    [
      'of no alternative',
      of({ a: { oneOf: [of({ k: { const: 'p' } }), of({ k: { const: 'q' } })] } }),
      { a: { k: 'r' } },
      [
        'a: fits none of the alternatives: (1) a.k: expected "p", got the text "r"; (2) a.k: expected "q", got the text "r"',
      ],
    ],
    [
      'of two alternatives where one is wanted',
      of({ a: { oneOf: [{ type: 'number' }, { minimum: 1 }] } }),
      { a: 5 },
      ['a: fits more than one of the alternatives, must fit exactly one'],
    ],
    ['no object', of({}), 'a', ['arguments: expected object, got the text "a"']],
    ['no JSON', of({}), { a: 1n }, ['arguments: expected plain JSON values']],
  ])('that are %s are told by place, expectation and what came', (_, schema, args, expected) => {
    expect(lines(schema, args)).toEqual(expected);
  });

  it('that are long are cut in the line, and many lines in their number', () => {
    expect(lines(of({ a: { type: 'number' } }), { a: '😀'.repeat(1000) })[0]!.length).toBeLessThan(
      120,
    );
    const many = lines(
      of({}, { additionalProperties: { type: 'number' } }),
      Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, 'x'])),
    );
    expect(many).toHaveLength(21);
    expect(many.at(-1)).toBe('… and 30 more');
  });

  const deep = (levels: number) => {
    let value: unknown = 'x';
    for (let level = 0; level < levels; level++) value = { n: value };
    return value;
  };
  const tree = of(
    { a: { $ref: '#/$defs/T' } },
    {
      $defs: {
        T: {
          anyOf: [{ type: 'string' }, { type: 'object', properties: { n: { $ref: '#/$defs/T' } } }],
        },
      },
    },
  );

  it.each<[string, JsonSchema, unknown]>([
    [
      'in a list',
      of({ a: { type: 'array', items: { type: 'number' } } }),
      Array.from({ length: 300_000 }, () => 'x'),
    ],
    [
      'in a map',
      of({ a: { type: 'object', additionalProperties: { type: 'number' } } }),
      Object.fromEntries(Array.from({ length: 300_000 }, (_, at) => [at, 'x'])),
    ],
    ['in levels', tree, deep(2000)],
    ['in more levels than can be walked', tree, deep(20_000)],
  ])(
    'of which hundreds of thousands are wrong, %s, do not pass, nor does the check give up',
    (_, schema, a) => {
      const problems: Problem[] = [];
      const validator = createArgumentValidator({ onProblem: (problem) => problems.push(problem) });
      const check = validator.validate(schema, { a });
      expect(check).toMatchObject({
        ok: false,
        violations: [expect.stringMatching(/^a|^arguments/u)],
      });
      expect(problems).toEqual([]);
      expect(validator.validate(schema, { a: 5 }).ok).toBe(false);
    },
  );

  it('of which very many are wrong are told by the first few', () => {
    const told = lines(of({ a: { items: { type: 'number' } } }), {
      a: Array.from({ length: 20_000 }, (_, at) => `${at}`),
    });
    expect(told).toHaveLength(21);
    expect(told[0]).toBe('a[0]: expected number, got the text "0"');
    expect(told.at(-1)).toMatch(/^… and at least \d+ more$/u);
  });

  it('may have members that are undefined: they do not travel', () => {
    expect(lines(of({ a: { type: 'string' } }), { a: undefined })).toEqual([]);
    expect(lines(of({ a: { type: 'string' } }, { required: ['a'] }), { a: undefined })).toEqual([
      'a: missing, it is required',
    ]);
  });

  it.each([
    ['http://json-schema.org/draft-04/schema#', { minimum: 1, exclusiveMinimum: true }, 1],
    [
      'http://json-schema.org/draft-07/schema#',
      { items: [{ type: 'string' }], additionalItems: false },
      ['a', 1],
    ],
    [
      'https://json-schema.org/draft/2020-12/schema',
      { prefixItems: [{ type: 'string' }], items: false },
      ['a', 1],
    ],
    [undefined, { prefixItems: [{ type: 'string' }], items: false }, ['a', 1]],
  ])('are read by the draft that the schema names: %s', ($schema, rule, wrong) => {
    const schema = { ...of({ a: rule }), ...($schema === undefined ? {} : { $schema }) };
    expect(lines(schema, { a: wrong })).toHaveLength(1);
    expect(lines(schema, { a: Array.isArray(wrong) ? ['a'] : 2 })).toEqual([]);
  });
});

describe('a schema', () => {
  it('is compiled once per object, at first use, and neither changed nor needed to be changeable', () => {
    const clone = vi.spyOn(globalThis, 'structuredClone');
    const schema: JsonSchema = Object.freeze(
      of(Object.freeze({ a: Object.freeze({ type: 'string' }) })),
    );
    const validator = createArgumentValidator();
    for (let i = 0; i < 3; i++)
      expect(validator.validate(schema, { a: 'x' })).toEqual({ ok: true });
    expect(clone).toHaveBeenCalledTimes(1);
    clone.mockRestore();
  });

  it.each<[string, JsonSchema, unknown]>([
    ['with a pattern of another language', of({ a: { pattern: '(?i)x' } }), { a: 'x' }],
    ['with a reference that leads nowhere', of({ a: { $ref: '#/$defs/none' } }), { a: 1 }],
    [
      'with a reference to another place',
      of({ a: { $ref: 'http://127.0.0.1:9/never.json' } }),
      { a: 1 },
    ],
    ['with references that go round in a circle', of({ a: { $ref: '#/properties/a' } }), { a: 1 }],
    ['that does not compile', { $id: 'http://[', type: 'object' }, {}],
    [
      'that contains itself',
      (() => {
        const loop: Record<string, unknown> = { type: 'object' };
        loop['items'] = loop;
        loop['not'] = loop;
        return loop;
      })(),
      {},
    ],
  ])('%s lets everything pass and is reported once', (_, schema, args) => {
    const problems: [Problem, JsonSchema][] = [];
    const fetched = vi.spyOn(globalThis, 'fetch');
    const validator = createArgumentValidator({ onProblem: (...given) => problems.push(given) });
    for (let i = 0; i < 3; i++) expect(validator.validate(schema, args)).toEqual({ ok: true });
    expect(problems).toEqual([
      [expect.objectContaining({ code: 'schema-unusable', severity: 'warning' }), schema],
    ]);
    expect(problems[0]![0].message).not.toContain('\n');
    expect(fetched).not.toHaveBeenCalled();
    fetched.mockRestore();
  });

  it('that is no schema lets everything pass', () => {
    for (const schema of [undefined, null, true, 'x', []]) {
      expect(createArgumentValidator().validate(schema as never, { a: 1 })).toEqual({ ok: true });
    }
  });

  it('whose problem nobody asked for warns', () => {
    const emitted = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    createArgumentValidator().validate(of({ a: { pattern: '(' } }, { title: 'pay' }), { a: 'x' });
    expect(emitted).toHaveBeenCalledWith(expect.stringMatching(/^pay: The schema/u), {
      type: 'PatchbayWarning',
      code: 'patchbay:schema-unusable',
    });
    emitted.mockRestore();
  });
});

describe('vercel-ai-18909: unions stay unions', () => {
  const { schema, table } = JSON.parse(
    readFileSync(new URL('fixtures/union.json', import.meta.url), 'utf8'),
  ) as { schema: JsonSchema; table: readonly [unknown, boolean][] };

  it.each(table)('%j is valid: %s', (args, valid) => {
    expect(createArgumentValidator().validate(schema, args).ok).toBe(valid);
  });

  it('reaches the provider with required, descriptions, unions and tuples as they are', () => {
    expect(providerSchema(schema).schema).toEqual(schema);
  });

  it('enum, const, default, format, ranges and keywords of nobody pass through', () => {
    const rich = of({
      a: { enum: [1], const: 1, default: 1, minimum: 0, maximum: 9 },
      b: { format: 'int32', 'x-ui': { $ref: 5 } },
    });
    expect(providerSchema(rich).schema).toEqual(rich);
    expect(lines(rich, { a: 1, b: 7 })).toEqual([]);
  });
});
