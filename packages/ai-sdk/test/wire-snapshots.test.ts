import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import type { ContentPart, JsonSchema, ToolReturn } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { ToolLoopAgent, type LanguageModel } from 'ai';
import { afterAll, describe, expect, it } from 'vitest';

import { aiSdk } from '../src/index.ts';
import { call, capability, MAJORS, scripted, text } from './majors.ts';

const PNG = 'iVBORw0KGgo=';
const JPEG = '/9j/4AA=';
const WAV = 'UklGRg==';
const PDF = 'JVBERi0=';
const parts = (...content: readonly ContentPart[]) => ({ content });
const said = { type: 'text', text: 'Said.' } as const;

/** One result of every kind. */
const RESULTS: Readonly<Record<string, ToolReturn>> = {
  text: parts(said, { type: 'text', text: 'More.' }),
  image: parts(said, { type: 'image', mimeType: 'image/png', data: PNG }),
  image_alone: parts({ type: 'image', mimeType: 'image/jpeg', data: JPEG }),
  audio: parts(said, { type: 'audio', mimeType: 'audio/wav', data: WAV }),
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
  both: { content: [said], structuredContent: { rows: [1, 2] } },
  error: { content: [{ type: 'text', text: 'disk full' }], isError: true },
  nothing: parts(),
  unknown: parts({ type: 'hologram', raw: { beam: 1 } }),
};
const NAMES = Object.keys(RESULTS);

/** A union at the top, references, a recursion, a constant. */
const inputSchema: JsonSchema = {
  $defs: { Tree: { type: 'object', properties: { kid: { $ref: '#/$defs/Tree' } } } },
  anyOf: [
    { properties: { tree: { $ref: '#/$defs/Tree' } }, required: ['tree'] },
    { properties: { leaf: { const: 'green' } }, required: ['leaf'] },
  ],
};

const registry = new ExtensionRegistry();
registry.register(
  capability(
    'c',
    NAMES.map((name) => ({
      name,
      ...(name === 'text' ? { inputSchema } : {}),
      call: () => RESULTS[name],
    })),
    { instructions: async () => [{ source: 'c', kind: 'static', text: 'Use c.' }] },
  ),
);
afterAll(() => registry.close());

const extensions = () => aiSdk(registry.view(), { onProblem: () => undefined });
const calls = NAMES.map((name) =>
  call(name, `c__${name}`, name === 'text' ? { leaf: 'green' } : {}),
);

const asFile = async (value: unknown, name: string) =>
  expect(`${JSON.stringify(value, undefined, 2)}\n`).toMatchFileSnapshot(
    `fixtures/wire/${name}.json`,
  );

/**
 * What models are sent of a result of every kind. The files were read by a person: a difference is a change of what models
 * are shown. Written anew by `vitest run <this file> -u`.
 */
describe('what a model is given', () => {
  it.each(MAJORS)('by ai $major', async (major) => {
    const { model, seen } = scripted(major, [calls, [text('done')]]);
    await new major.ai.ToolLoopAgent({ model, ...extensions() }).generate({ prompt: 'go' });
    const { prompt, tools } = seen[1]!;
    await asFile({ prompt, odd: tools.find(({ name }) => name === 'c__text') }, `ai${major.major}`);
  });
});

/** A model of a provider's package, with a `fetch` that records and refuses. */
const PROVIDERS: Readonly<Record<string, (fetch: typeof globalThis.fetch) => LanguageModel>> = {
  'openai-responses': (fetch) => createOpenAI({ apiKey: 'x', fetch }).responses('gpt-4o'),
  'openai-chat': (fetch) => createOpenAI({ apiKey: 'x', fetch }).chat('gpt-4o'),
  anthropic: (fetch) => createAnthropic({ apiKey: 'x', fetch })('claude-sonnet-4-5'),
  google: (fetch) => createGoogle({ apiKey: 'x', fetch })('gemini-3-pro-preview'),
};

describe('what is sent by ai 7', () => {
  it.each(Object.entries(PROVIDERS))('to %s', async (name, make) => {
    const { model, seen } = scripted(MAJORS[1], [calls, [text('done')]]);
    const { responseMessages } = await new ToolLoopAgent({ model, ...extensions() }).generate({
      prompt: 'go',
    });
    expect(seen).toHaveLength(2);
    const bodies: Record<string, unknown>[] = [];
    const fetch = async (_: unknown, init?: { readonly body?: unknown }) => {
      bodies.push(JSON.parse(String(init?.body)) as Record<string, unknown>);
      return Response.json({ error: { message: 'stop' } }, { status: 400 });
    };
    const agent = new ToolLoopAgent({
      model: make(fetch),
      maxRetries: 0,
      ...extensions(),
    });
    const messages = [{ role: 'user' as const, content: 'go' }, ...responseMessages.slice(0, -1)];
    await expect(agent.generate({ messages })).rejects.toThrow();
    const [{ tools, ...body }] = bodies as [Record<string, unknown>];
    const sent = JSON.stringify(tools);
    expect(NAMES.filter((each) => sent.includes(`"c__${each}"`))).toEqual(NAMES);
    await asFile({ ...body, odd: find(tools, 'c__text') }, `ai7-${name}`);
  });
});

/** The declaration of a tool, wherever a provider puts it. */
function find(tools: unknown, name: string): unknown {
  if (typeof tools !== 'object' || tools === null) return undefined;
  if ('name' in tools && tools.name === name) return tools;
  return Object.values(tools)
    .map((inner) => find(inner, name))
    .find((found) => found !== undefined);
}
