import {
  createArgumentValidator,
  errorText,
  planResult,
  providerSchema,
  withoutStrictNulls,
} from '@patchbay/adapter-kit';
import type { JsonSchema, ToolResult } from '@patchbay/protocols';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const KEYWORDS =
  'type properties items anyOf oneOf allOf required enum const $ref $defs definitions pattern additionalProperties not if then __proto__ a'.split(
    ' ',
  );
const VALUES = ['object', 'string', '#', '#/$defs/a', '#/properties/a', '#/a%', 'a', '(['];
const { schema } = fc.letrec<{ schema: JsonSchema; value: unknown }>((tie) => ({
  schema: fc.dictionary(fc.constantFrom(...KEYWORDS), tie('value'), { maxKeys: 5 }),
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(...VALUES),
    fc.jsonValue({ maxDepth: 1 }),
    tie('schema'),
    fc.array(tie('schema'), { maxLength: 3 }),
  ),
}));

const COMPOSITION = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'];

/** What is random here is printed with its seed when it fails. */
describe('whatever others wrote', () => {
  it('as a schema becomes an object schema without a composition at the top', () => {
    fc.assert(
      fc.property(schema, fc.boolean(), fc.boolean(), (written, isInline, strict) => {
        const shown = providerSchema(written, {
          references: isInline ? 'inline' : 'keep',
          constAsEnum: isInline,
          strict,
        });
        expect(shown.schema.type).toBe('object');
        expect(typeof shown.schema['properties']).toBe('object');
        for (const keyword of COMPOSITION) expect(shown.schema).not.toHaveProperty([keyword]);
        expect(JSON.stringify(shown.schema).length).toBeLessThan(200_000);
      }),
    );
  });

  it('as a schema, and any arguments, are a verdict with a few lines', () => {
    const validator = createArgumentValidator({ onProblem: () => undefined });
    fc.assert(
      fc.property(schema, fc.anything(), (written, args) => {
        const check = validator.validate(written, args);
        if (!check.ok) {
          expect(check.violations.length).toBeGreaterThan(0);
          expect(check.violations.length).toBeLessThanOrEqual(21);
        }
        withoutStrictNulls(written, args);
      }),
    );
  });

  it('as a result becomes some text within the limit', () => {
    const part = fc.record(
      {
        type: fc.oneof(fc.constantFrom('text', 'image', 'resource', 'resource_link'), fc.string()),
        text: fc.anything(),
        data: fc.anything(),
        mimeType: fc.anything(),
        uri: fc.anything(),
        name: fc.anything(),
        title: fc.anything(),
        size: fc.anything(),
        description: fc.anything(),
        raw: fc.anything(),
      },
      { requiredKeys: [] },
    );
    const content = fc.oneof(
      fc.array(fc.oneof(part, fc.anything()), { maxLength: 5 }),
      fc.anything(),
    );
    fc.assert(
      fc.property(content, fc.anything(), fc.boolean(), (parts, structuredContent, isError) => {
        const result = { content: parts, structuredContent, isError } as unknown as ToolResult;
        const { text } = planResult(result, { maxResultChars: 100 });
        expect(text).not.toBe('');
        expect(text.length).toBeLessThan(400);
      }),
    );
  });

  it('throws becomes some text', () => {
    fc.assert(fc.property(fc.anything(), (thrown) => errorText(thrown).startsWith('Error: ')));
  });
});
