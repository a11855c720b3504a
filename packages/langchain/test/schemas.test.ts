import { langchain } from '@patchbay/langchain';
import type { JsonSchema, Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent, HumanMessage } from 'langchain';
import { expect, it } from 'vitest';

import { ask, capability, outcomes, script } from './script.ts';
import { sent } from './wire.ts';

/** A recursive reference, and a union at the top. */
const inputSchema: JsonSchema = {
  type: 'object',
  $defs: { N: { type: 'object', properties: { kid: { $ref: '#/$defs/N' } } } },
  properties: { n: { $ref: '#/$defs/N' } },
  oneOf: [{ required: ['n'] }, { properties: { m: { type: 'string' } }, required: ['m'] }],
};

const board = () => {
  const registry = new ExtensionRegistry();
  registry.register(
    capability('c', { t: { inputSchema, call: (args: object) => JSON.stringify(args) } }),
  );
  return registry;
};
const go = [new HumanMessage('go')];

it('Anthropic is given a tool whose schema has a union at the top, which it would drop', async () => {
  await using registry = board();
  const { tools } = (await sent('anthropic', langchain(registry.view()).middleware, go)) as {
    tools: { name: string; input_schema: { properties: object } }[];
  };
  expect(tools.map(({ name }) => name)).toEqual(['c__t']);
  expect(Object.keys(tools[0]?.input_schema.properties ?? {}).toSorted()).toEqual(['m', 'n']);
});

it('ChatGoogle is given a recursive reference written out, which it would refuse', async () => {
  await using registry = board();
  const problems: Problem[] = [];
  const lc = langchain(registry.view(), { onProblem: (problem) => problems.push(problem) });
  const body = (await sent('google', lc.middleware, go)) as {
    tools: { functionDeclarations: { name: string; parameters: unknown }[] }[];
  };
  const parameters = body.tools[0]?.functionDeclarations[0]?.parameters;
  expect(JSON.stringify(parameters)).not.toContain('$ref');
  expect(problems).toMatchObject([{ source: 'c', code: 'schema-unusable', severity: 'warning' }]);
  expect(parameters).toMatchObject({
    properties: { n: { type: 'object' }, m: { type: 'string' } },
  });
});

it('arguments are checked against the schema as its author wrote it', async () => {
  await using registry = board();
  const agent = createAgent({
    model: script([
      { name: 'c__t', args: { m: 'yes' } },
      { name: 'c__t', args: {} },
      { name: 'c__t', args: { n: { kid: { kid: 1 } } } },
    ]),
    ...langchain(registry.view()),
  });
  expect(outcomes(await agent.invoke(ask()))).toEqual([
    'success:{"m":"yes"}',
    expect.stringMatching(/^error:Error: /),
    expect.stringMatching(/^error:Error: /),
  ]);
});

it('a schema that cannot be used is a problem of its tool, which is called all the same', async () => {
  await using registry = new ExtensionRegistry();
  const unusable = { type: 'object', properties: { s: { type: 'string', pattern: '(?i)x' } } };
  registry.register(capability('c', { t: { inputSchema: unusable, call: () => 'called' } }));
  const problems: Problem[] = [];
  const agent = createAgent({
    model: script([{ name: 'c__t', args: { s: 'X' } }], [{ name: 'c__t', args: { s: 'x' } }]),
    ...langchain(registry.view(), { onProblem: (problem) => problems.push(problem) }),
  });
  expect(outcomes(await agent.invoke(ask()))).toEqual(['success:called', 'success:called']);
  expect(problems).toMatchObject([{ source: 'c', code: 'schema-unusable', severity: 'warning' }]);
  expect(problems[0]?.message).toContain('"c__t"');
});
