import { readFileSync } from 'node:fs';

import type { JsonSchema, Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

import { aiSdk, type AiSdkOptions } from '../src/index.ts';
import { call, capability, MAJORS, outputs, scripted, text, type Major } from './majors.ts';

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`fixtures/${name}`, import.meta.url), 'utf8'));
type Schemas = Readonly<Record<string, JsonSchema>>;

/** A run with a tool for each schema; gives what the model was shown, read, and what the tools were called with. */
async function run(
  major: Major,
  schemas: Readonly<Record<string, JsonSchema>>,
  calls: readonly (readonly [name: string, args: unknown])[],
  options: AiSdkOptions = {},
) {
  const registry = new ExtensionRegistry();
  onTestFinished(() => registry.close());
  const got: unknown[] = [];
  const tools = Object.entries(schemas).map(([name, inputSchema]) => ({
    name,
    inputSchema,
    call: (args: unknown) => `${got.push(args)}`,
  }));
  registry.register(capability('t', tools));
  const problems: Problem[] = [];
  const { model, seen } = scripted(major, [
    calls.map(([name, args], at) => call(String(at), `t__${name}`, args)),
    [text('done')],
  ]);
  const onProblem = (problem: Problem) => void problems.push(problem);
  const extensions = aiSdk(registry.view(), { ...options, onProblem });
  const agent = new major.ai.ToolLoopAgent({ model, ...extensions });
  expect((await agent.generate({ prompt: 'go' })).text).toBe('done');
  const shown = Object.fromEntries(
    seen[0]!.tools.map((tool) => [tool.name.slice('t__'.length), tool]),
  );
  return { shown, got, problems, read: outputs(seen[1]), seen };
}

describe.each(MAJORS)('public reports on schemas, on ai $major', (major) => {
  it('gemini-cli-13326: references stay where they lead somewhere, else are open and reported; none is fetched', async () => {
    const refs = fixture('refs.json') as Schemas;
    const fetched = vi.spyOn(globalThis, 'fetch');
    const { shown, problems, got } = await run(major, refs, [
      ['siblings', { external: { name: 'x' } }],
      ['ref-to-properties', { urls: ['u'], actions: [{}] }],
      ['missing', { m: 1 }],
      ['external', { e: 1 }],
      ['recursive', { root: { children: [{ value: 1 }] } }],
    ]);
    expect(fetched).not.toHaveBeenCalled();
    fetched.mockRestore();
    for (const [name, written] of Object.entries(refs)) {
      if (['external', 'missing'].includes(name)) continue;
      expect(shown[name]?.inputSchema, name).toEqual(written);
    }
    expect(shown['external']?.inputSchema).toMatchObject({ properties: { e: {} } });
    expect(shown['missing']?.inputSchema).toMatchObject({
      properties: { m: {}, okField: { type: 'string' } },
    });
    const reported = problems.filter(({ message }) => message.includes('leads nowhere'));
    expect(reported.map(({ code }) => code)).toEqual(['schema-unusable', 'schema-unusable']);
    // All but the last one, which is no tree.
    expect(got).toHaveLength(4);
  });

  it('opencode-45245: a strict face where it can be said, and arguments without its nulls', async () => {
    const objects = fixture('objects.json') as Schemas;
    const strict = await run(
      major,
      objects,
      [
        ['optionalOnly', { server: null }],
        ['nestedOptional', { opt: { a: 'x', b: null } }],
      ],
      { strict: true },
    );
    expect(strict.got).toEqual([{}, { opt: { a: 'x' } }]);
    for (const [name, { strict: isStrict, inputSchema }] of Object.entries(strict.shown)) {
      const open = ['openMap', 'typedMap', 'emptyAdditional', 'pattern', 'freeForm'];
      expect(isStrict, name).toBe(!open.includes(name));
      const { required, properties } = inputSchema as JsonSchema;
      if (isStrict) expect(required).toEqual(Object.keys(properties as object));
    }
    const normal = await run(major, objects, [['bare', {}]]);
    for (const name of ['bare', 'onlyType'])
      expect(normal.shown[name]?.inputSchema).toEqual({
        type: 'object',
        properties: {},
        additionalProperties: false,
      });
    for (const name of ['optionalOnly', 'nestedOptional', 'openMap', 'typedMap', 'freeForm'])
      expect(normal.shown[name]).toMatchObject({ strict: false, inputSchema: objects[name] });
  });

  it('one that cannot be used is a problem of its tool, told once; the tool is called all the same', async () => {
    const unusable = { type: 'object', properties: { s: { type: 'string', pattern: '(?i)x' } } };
    const { got, problems } = await run(major, { a: unusable }, [
      ['a', { s: 'X' }],
      ['a', { s: 'x' }],
    ]);
    expect(got).toEqual([{ s: 'X' }, { s: 'x' }]);
    expect(problems).toMatchObject([{ source: 't', code: 'schema-unusable', severity: 'warning' }]);
    expect(problems[0]?.message).toContain('"t__a"');
  });

  it('vercel-ai-18909: unions reach the model as they are, and each value gets its verdict', async () => {
    const { schema, table } = fixture('union.json') as {
      schema: JsonSchema;
      table: [object, boolean][];
    };
    const { shown, got } = await run(
      major,
      { union: schema },
      table.map(([args]) => ['union', args]),
    );
    expect(shown['union']?.inputSchema).toEqual(schema);
    expect(got).toEqual(table.filter(([, valid]) => valid).map(([args]) => args));
  });
});
