import type { BaseMessage } from '@langchain/core/messages';
import { langchain } from '@patchbay/langchain';
import type { ContentPart, JsonSchema, ToolReturn } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { AIMessage, createAgent, fakeModel } from 'langchain';
import { beforeAll, describe, expect, it } from 'vitest';

import { ask, capability } from './script.ts';
import { providers, sent, type Provider } from './wire.ts';

const PNG = 'iVBORw0KGgo=';
const JPEG = '/9j/4AA=';
const WAV = 'UklGRg==';
const PDF = 'JVBERi0=';
const parts = (...content: readonly ContentPart[]) => ({ content });
const text = { type: 'text', text: 'Said.' } as const;

/** One result of every kind, and two that come together. */
const RESULTS: Readonly<Record<string, ToolReturn>> = {
  text: parts(text, { type: 'text', text: 'More.' }),
  image: parts(text, { type: 'image', mimeType: 'image/png', data: PNG }),
  image_alone: parts({ type: 'image', mimeType: 'image/jpeg', data: JPEG }),
  audio: parts(text, { type: 'audio', mimeType: 'audio/wav', data: WAV }),
  pdf: parts({ type: 'resource', uri: 'f://a.pdf', mimeType: 'application/pdf', data: PDF }),
  archive: parts({ type: 'resource', uri: 'f://a.zip', mimeType: 'application/zip', data: PDF }),
  resource: parts({ type: 'resource', uri: 'f://a.md', mimeType: 'text/markdown', text: '# A' }),
  link: parts({
    type: 'resource_link',
    uri: 'f://b.csv',
    name: 'b',
    mimeType: 'text/csv',
    size: 9,
  }),
  structured: { content: [], structuredContent: { rows: [1, 2] } },
  both: { content: [text], structuredContent: { rows: [1, 2] } },
  error: { content: [{ type: 'text', text: 'disk full' }], isError: true },
  nothing: parts(),
  unknown: parts({ type: 'hologram', raw: { beam: 1 } }),
};

/** A union at the top, references, a recursion, a constant. */
const inputSchema: JsonSchema = {
  $defs: { Tree: { type: 'object', properties: { kid: { $ref: '#/$defs/Tree' } } } },
  anyOf: [
    { properties: { tree: { $ref: '#/$defs/Tree' } }, required: ['tree'] },
    { properties: { leaf: { const: 'green' } }, required: ['leaf'] },
  ],
};

let history: BaseMessage[];
const registry = new ExtensionRegistry();
registry.register(
  capability(
    'c',
    Object.fromEntries(
      Object.entries(RESULTS).map(([name, result]) => [
        name,
        name === 'text' ? { inputSchema, call: () => result } : () => result,
      ]),
    ),
    { instructions: async () => [{ source: 'c', kind: 'static', text: 'Use c.' }] },
  ),
);
const lc = langchain(registry.view(), { onProblem: () => undefined });

beforeAll(async () => {
  const calls = Object.keys(RESULTS).map((name) => ({
    name: `c__${name}`,
    args: name === 'text' ? { leaf: 'green' } : {},
    id: name.padEnd(9, '0').replaceAll('_', '0').slice(0, 9),
  }));
  const model = fakeModel()
    .respond(new AIMessage({ content: '', tool_calls: calls }))
    .respond(new AIMessage('done'));
  const { messages } = await createAgent({ model, ...lc }).invoke(ask());
  history = messages.slice(0, -1);
  return () => registry.close();
});

/** Only what we shape: messages, system prompt, and the schema of the first tool. */
function shaped(body: Readonly<Record<string, unknown>>) {
  const { messages, input, contents, system, systemInstruction } = body;
  const tools = JSON.stringify(body['tools']);
  const kinds = Object.keys(RESULTS).filter((name) => tools.includes(`"c__${name}"`));
  return {
    system: system ?? systemInstruction,
    messages: messages ?? input ?? contents,
    tools: kinds,
    odd: find(body['tools'], 'c__text'),
  };
}

/** The declaration of a tool, wherever a provider puts it. */
function find(tools: unknown, name: string): unknown {
  if (typeof tools !== 'object' || tools === null) return undefined;
  if ('name' in tools && tools.name === name) return tools;
  return Object.values(tools)
    .map((inner) => find(inner, name))
    .find((found) => found !== undefined);
}

/**
 * What each provider package sends of a history with a result of every kind. The files were read by a person: a difference
 * is a change of what models are shown. Written anew by `vitest run <this file> -u`.
 *
 * ChatGoogle leaves out calls that another model made, with this adapter or without.
 */
describe('what is sent', () => {
  it.each(Object.keys(providers) as Provider[])('to %s', async (provider) => {
    const body = shaped(await sent(provider, lc.middleware, history));
    expect(body.tools).toHaveLength(Object.keys(RESULTS).length);
    const json = `${JSON.stringify(body, undefined, 2)}\n`;
    await expect(json).toMatchFileSnapshot(
      `fixtures/wire/${provider.replaceAll(/[ :]/g, '-')}.json`,
    );
  });
});
