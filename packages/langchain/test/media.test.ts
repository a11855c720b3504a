import { HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages';
import { MemorySaver } from '@langchain/langgraph';
import { langchain, type MediaOption } from '@patchbay/langchain';
import type { ContentPart, Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import {
  AIMessage,
  createAgent,
  createMiddleware,
  fakeModel,
  modelFallbackMiddleware,
} from 'langchain';
import { beforeAll, describe, expect, it } from 'vitest';

import { ask, capability, kinds, script, toolMessages } from './script.ts';
import { providers, sent } from './wire.ts';

const PNG = 'iVBORw0KGgo=';
const image: ContentPart = { type: 'image', mimeType: 'image/png', data: PNG };
const shot = (name: string) => () => ({ content: [{ type: 'text', text: `${name}.` }, image] });

/** A run with two images from two parallel calls, as its state keeps it. */
let history: BaseMessage[];
const board = new ExtensionRegistry();
board.register(capability('c', { one: shot('one'), two: shot('two') }));
const parts = (media: MediaOption = 'auto') => langchain(board.view(), { media }).middleware;

beforeAll(async () => {
  const agent = createAgent({
    model: script([{ name: 'c__one' }, { name: 'c__two' }]),
    ...langchain(board.view()),
  });
  history = (await agent.invoke(ask())).messages.slice(0, -1);
  return async () => board.close();
});

type Block = { readonly type?: string; readonly content?: readonly Block[] };
const types = (content: unknown): string =>
  typeof content === 'string'
    ? 'string'
    : (content as readonly Block[]).map(({ type }) => type).join('+');

describe('media in results', () => {
  it('stay out of the text that the state keeps, and are kept once beside it', () => {
    const results = toolMessages({ messages: history });
    expect(results.map(({ content }) => typeof content)).toEqual(['string', 'string']);
    expect(results[0]?.artifact.patchbay).toEqual({
      content: [{ type: 'text', text: 'one.' }, image],
    });
    expect(JSON.stringify(results[0]).split(PNG)).toHaveLength(2);
  });

  it('reach OpenAI chat as user images behind the results of the step', async () => {
    const { messages } = (await sent('openai chat', parts(), history)) as {
      messages: { role: string; content: unknown }[];
    };
    expect(messages.slice(-4).map(({ role, content }) => `${role}:${types(content)}`)).toEqual([
      'tool:string',
      'tool:string',
      'user:text+image_url',
      'user:text+image_url',
    ]);
  });

  it('reach OpenAI Responses as user images behind the results of the step', async () => {
    const { input } = (await sent('openai responses', parts(), history)) as {
      input: { type?: string; role?: string; output?: unknown; content?: unknown }[];
    };
    expect(
      input
        .slice(-4)
        .map(({ type, output, content }) =>
          type === 'function_call_output' ? `output:${typeof output}` : types(content),
        ),
    ).toEqual([
      'output:string',
      'output:string',
      'input_text+input_image',
      'input_text+input_image',
    ]);
  });

  it('reach Anthropic inside each result', async () => {
    const { messages } = (await sent('anthropic', parts(), history)) as {
      messages: { content: Block[] }[];
    };
    expect(messages.at(-1)?.content.map(({ content }) => types(content))).toEqual([
      'text+image',
      'text+image',
    ]);
  });

  it('reach ChatGoogle as user images', async () => {
    const { contents } = (await sent('google', parts(), history)) as {
      contents: { role: string; parts: object[] }[];
    };
    const flat = contents.flatMap(({ parts: all }) => all.map((part) => Object.keys(part)[0]));
    expect(flat.filter((kind) => kind === 'functionResponse')).toHaveLength(2);
    expect(flat.filter((kind) => kind === 'inlineData')).toHaveLength(2);
  });

  it.each(['openai chat', 'openai responses', 'anthropic', 'google'] as const)(
    'are sent to %s as many times as there are images, and never as text',
    async (provider) => {
      const body = await sent(provider, parts(), history);
      expect(JSON.stringify(body).split(PNG)).toHaveLength(3);
      const texts: string[] = [];
      JSON.stringify(body, (key, value: unknown) => {
        if (['text', 'output'].includes(key) && typeof value === 'string') texts.push(value);
        return value;
      });
      expect(texts.filter((text) => text.includes(PNG))).toEqual([]);
    },
  );

  it('reach Anthropic from a checkpoint, with an agent that never saw them', async () => {
    const checkpointer = new MemorySaver();
    const config = { configurable: { thread_id: 't' } };
    await createAgent({
      model: script([{ name: 'c__one' }]),
      ...langchain(board.view()),
      checkpointer,
    }).invoke(ask(), config);
    const kept = await checkpointer.getTuple(config);
    const messages = kept?.checkpoint.channel_values['messages'] as BaseMessage[];
    expect(JSON.stringify(await sent('anthropic', parts(), messages))).toContain(PNG);
  });

  it('of every kind reach ChatGoogleGenerativeAI inside the result; PDF reach Anthropic so too', async () => {
    await using registry = new ExtensionRegistry();
    const content: ContentPart[] = [
      image,
      { type: 'resource', uri: 'x://a.pdf', mimeType: 'application/pdf', data: 'JVBERi0=' },
      { type: 'audio', mimeType: 'audio/wav', data: 'UklGRg==' },
    ];
    registry.register(capability('c', { all: () => ({ content }) }));
    const lc = langchain(registry.view());
    const shown = async (kind: string) => {
      const model = script([{ name: 'c__all' }]);
      model._llmType = () => kind;
      await createAgent({ model, ...lc }).invoke(ask());
      const [result, ...rest] = model.calls[1]!.messages.slice(2);
      return [types(result?.content), ...rest.map((message) => types(message.content))];
    };
    expect(await shown('googlegenerativeai')).toEqual(['text+image+file+audio']);
    expect(await shown('anthropic')).toEqual(['text+image+file']);
    expect(await shown('mistral_ai')).toEqual(['string', 'text+image_url']);
  });

  it('can be held back, or placed by a rule of one’s own', async () => {
    for (const media of [
      'none',
      () => ({ image: 'none', file: 'none', audio: 'none' }) as const,
    ] as const) {
      const body = await sent('anthropic', parts(media), history);
      expect(JSON.stringify(body)).not.toContain(PNG);
    }
    const asked: string[] = [];
    await sent(
      'anthropic',
      parts((kind) => (asked.push(kind), { image: 'user', file: 'none', audio: 'none' })),
      history,
    );
    expect(asked).toEqual(['anthropic']);
  });

  it('are shaped anew for the model that stands in', async () => {
    const seen: string[] = [];
    const first = providers.anthropic(async () => {
      throw new Error('down');
    });
    const model = fakeModel().respond((messages) => {
      seen.push(
        messages
          .slice(-4)
          .map((m) => `${m.getType()}:${types(m.content)}`)
          .join(' '),
      );
      return new AIMessage('ok');
    });
    await createAgent({
      model: first,
      middleware: [modelFallbackMiddleware(model), ...parts()],
    }).invoke({ messages: history });
    expect(seen).toEqual(['tool:string tool:string human:text+image_url human:text+image_url']);
  });

  it('that no provider takes stay a note: one bad part would make it refuse the whole request', async () => {
    await using registry = new ExtensionRegistry();
    const odd: ContentPart[] = [
      { type: 'image', mimeType: 'image/svg+xml', data: PNG },
      { type: 'image', mimeType: 'image/png', data: '%%%not base64%%%' },
      { type: 'image', mimeType: '', data: PNG },
      { type: 'resource', uri: 'x://blob', mimeType: 'application/zip', data: PNG },
      { type: 'hologram', raw: { data: PNG } },
    ];
    registry.register(capability('c', { odd: () => ({ content: odd }) }));
    const problems: Problem[] = [];
    const lc = langchain(registry.view(), { onProblem: (problem) => problems.push(problem) });
    const result = await createAgent({ model: script([{ name: 'c__odd' }]), ...lc }).invoke(ask());
    const body = await sent('anthropic', lc.middleware, result.messages.slice(0, -1));
    expect(JSON.stringify(body)).not.toMatch(/"type":"(image|document)"/);
    expect(JSON.stringify(body)).not.toContain(PNG);
    const content = toolMessages(result)[0]!.text;
    expect(content.split('\n')).toHaveLength(odd.length);
    expect(problems.map(({ source, code }) => `${source} ${code}`)).toEqual(
      Array.from({ length: 3 }, () => 'c protocol-error'),
    );
  });

  it('of other steps stand behind the results of their own step', async () => {
    const seen: string[] = [];
    const model = fakeModel()
      .respondWithTools([{ name: 'c__one', args: {}, id: '1' }])
      .respondWithTools([{ name: 'c__two', args: {}, id: '2' }])
      .respond((messages) => {
        seen.push(kinds(messages));
        return new AIMessage('done');
      });
    await createAgent({ model, ...langchain(board.view()) }).invoke(ask());
    expect(seen).toEqual(['human,ai,tool,human,ai,tool,human']);
  });
});

describe('messages that are not ours', () => {
  it('pass as they are, also with an artifact that looks like ours', async () => {
    const foreign = [
      new HumanMessage('x'),
      new AIMessage({ content: '', tool_calls: [{ name: 'a', args: {}, id: '1' }] }),
      new ToolMessage({ content: 'text', tool_call_id: '1', artifact: { patchbay: 'no' } }),
    ];
    const seen: BaseMessage[][] = [];
    const spy = createMiddleware({
      name: 'spy',
      wrapModelCall: (request, handler) => {
        seen.push(request.messages);
        return handler(request);
      },
    });
    const model = fakeModel().respond(new AIMessage('ok'));
    await createAgent({ model, middleware: [...parts(), spy] }).invoke({ messages: foreign });
    expect(seen[0]?.map((message) => message.content)).toEqual(['x', '', 'text']);
  });
});
