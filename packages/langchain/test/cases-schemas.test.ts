import { readFileSync } from 'node:fs';

import { langchain } from '@patchbay/langchain';
import type { JsonSchema, Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent, HumanMessage } from 'langchain';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

import { ask, capability, script, type ScriptedCall } from './script.ts';
import { sent, type Provider } from './wire.ts';

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`fixtures/${name}`, import.meta.url), 'utf8'));
type Schemas = Readonly<Record<string, JsonSchema>>;

/** A view with a tool for each schema. */
function board(schemas: Readonly<Record<string, JsonSchema>>) {
  const registry = new ExtensionRegistry();
  onTestFinished(() => registry.close());
  const got: unknown[] = [];
  const call = (args: unknown) => `${got.push(args)}`;
  registry.register(
    capability(
      't',
      Object.fromEntries(
        Object.entries(schemas).map(([name, inputSchema]) => [name, { inputSchema, call }]),
      ),
    ),
  );
  const problems: Problem[] = [];
  const lc = langchain(registry.view(), { onProblem: (problem) => problems.push(problem) });
  return {
    got,
    problems,
    run: (...calls: readonly ScriptedCall[]) =>
      createAgent({ model: script(calls), ...lc }).invoke(ask()),
    /** The declarations that a provider is sent, by name, and the whole of them as text. */
    shown: async (provider: Provider) => {
      const { tools } = await sent(provider, lc.middleware, [new HumanMessage('go')]);
      const [first] = tools as [{ functionDeclarations?: Declared[] }];
      const declared = first.functionDeclarations ?? (tools as { function: Declared }[]);
      return Object.fromEntries(
        declared.map((each) => {
          const { name, parameters } = 'function' in each ? each.function : each;
          return [name.slice('t__'.length), parameters];
        }),
      );
    },
  };
}

interface Declared {
  readonly name: string;
  readonly parameters: JsonSchema;
}

describe('public reports on schemas', () => {
  it('gemini-cli-13326: Google gets no reference, others get those that lead somewhere; none is fetched', async () => {
    const refs = fixture('refs.json') as Schemas;
    const { shown, problems, run, got } = board(refs);
    for (const provider of ['google', 'google-genai'] as const) {
      const written = await shown(provider);
      expect(Object.keys(written).toSorted()).toEqual(Object.keys(refs).toSorted());
      const text = JSON.stringify(written);
      expect(text).not.toMatch(/"(\$ref|\$defs|definitions)":/u);
      for (const [name, schema] of Object.entries(written))
        expect(JSON.stringify(schema).length, name).toBeLessThan(100_000);
      expect(written['ref-to-properties']).toMatchObject({
        properties: { actions: { items: { type: 'object' } } },
      });
      expect(written['siblings']).toMatchObject({
        properties: { external: { description: 'who', required: ['name'] } },
      });
    }
    const kept = await shown('openai chat');
    for (const [name, written] of Object.entries(refs)) {
      if (['external', 'missing'].includes(name)) continue;
      expect(kept[name], name).toEqual(written);
    }
    expect(kept['external']).toMatchObject({ properties: { e: {} } });
    expect(problems.filter(({ message }) => message.includes('leads nowhere'))).toHaveLength(2);
    const fetched = vi.spyOn(globalThis, 'fetch');
    await run(
      { name: 't__siblings', args: { external: { name: 'x' } } },
      { name: 't__missing', args: { m: 1 } },
      { name: 't__external', args: { e: 1 } },
      { name: 't__recursive', args: { root: { children: [{ value: 1 }] } } },
    );
    expect(fetched).not.toHaveBeenCalled();
    fetched.mockRestore();
    // All but the last one, which is no tree.
    expect(got).toHaveLength(3);
  });

  it('opencode-45245: no argument is made required or closed; a tool without any says so; strict is never asked for', async () => {
    const objects = fixture('objects.json') as Schemas;
    const { shown } = board(objects);
    for (const provider of ['openai chat', 'groq', 'mistral'] as const) {
      const { bare, onlyType, pattern, ...others } = await shown(provider);
      for (const each of [bare, onlyType])
        expect(each).toEqual({ type: 'object', properties: {}, additionalProperties: false });
      expect(pattern).toMatchObject(objects['pattern']!);
      for (const [name, schema] of Object.entries(others))
        expect(schema, name).toEqual(objects[name]);
    }
    const board2 = board(objects);
    await board2.run({ name: 't__optionalOnly', args: {} });
    expect(board2.got).toEqual([{}]);
  });

  it('vercel-ai-18909: unions reach the model as they are, and each value gets its verdict', async () => {
    const { schema, table } = fixture('union.json') as {
      schema: JsonSchema;
      table: [Record<string, unknown>, boolean][];
    };
    const { shown, run, got } = board({ union: schema });
    expect((await shown('openai chat'))['union']).toEqual(schema);
    await run(...table.map(([args], at) => ({ name: 't__union', args, id: `${at}` })));
    expect(got).toEqual(table.filter(([, valid]) => valid).map(([args]) => args));
  });
});
