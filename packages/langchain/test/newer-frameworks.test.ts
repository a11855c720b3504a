import { once } from 'node:events';

import { langchain } from '@patchbay/langchain';
import type { Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import {
  ClearToolUsesEdit,
  createAgent,
  fakeModel,
  HumanMessage,
  modelFallbackMiddleware,
  tool,
} from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask, capability, outcomes, script, slow } from './script.ts';
import {
  contextEditing,
  humanReview,
  modelRetry,
  summarization,
  toolCallLimit,
  toolError,
  toolRetry,
  toolSearch,
  toolSelector,
} from './shipped-middleware.ts';
import { sent } from './wire.ts';

/** What LangGraph does itself, and did not yet in the oldest version that LangChain may bring. */
describe('with a newer LangGraph, a run', () => {
  it('that nobody streams any more is aborted, and its tool hears of it', async () => {
    await using registry = new ExtensionRegistry();
    const { events, capability: made } = slow();
    registry.register(made);
    const heard = once(events, 'aborted');
    const agent = createAgent({
      model: script([{ name: 'c__slow' }]),
      ...langchain(registry.view()),
    });
    for await (const _ of await agent.stream(ask(), { streamMode: 'custom' })) break;
    expect(await heard).toHaveLength(1);
  });

  it('passes its own view to an agent that is called inside a tool', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { who: () => 'mine' }), { session: 'A' });
    const inner = createAgent({
      model: script([{ name: 'c__who' }]),
      ...langchain(registry.view(), { name: 'inner' }),
    });
    const sub = tool(
      async () => outcomes(await inner.invoke({ messages: [new HumanMessage('x')] })).join(),
      {
        name: 'sub',
        description: 'sub',
        schema: { type: 'object', properties: {} },
      },
    );
    const lc = langchain(registry.view());
    const outer = createAgent({
      model: script([{ name: 'sub' }]),
      tools: [sub],
      middleware: lc.middleware,
    });
    const result = await outer.invoke(ask(), {
      context: { patchbay: registry.view({ session: 'A' }) },
    });
    expect(outcomes(result)).toEqual([expect.stringMatching(/:success:mine$/)]);
  });
});

/** LangChain rejects the output of a tool that threw, and nobody need be listening. */
it('openwiki-426: a tool that throws does not end the process that streams events (v3)', async () => {
  await using registry = new ExtensionRegistry();
  registry.register(
    capability('c', {
      bad: () => {
        throw new Error('boom');
      },
    }),
  );
  const agent = createAgent({ model: script([{ name: 'c__bad' }]), ...langchain(registry.view()) });
  const run = await agent.streamEvents(ask(), { version: 'v3' });
  const statuses: string[] = [];
  for await (const { name, status } of run.toolCalls) statuses.push(`${name} ${await status}`);
  expect(statuses).toEqual(['c__bad finished']);
  expect(outcomes(await run.output)).toEqual([expect.stringMatching(/^error:Error: .*boom/)]);
});

/** Middlewares that the oldest LangChain does not have. */
describe('the place in the list', () => {
  const nothing = { type: 'object', properties: {} } as const;

  it('providerToolSearch after ours defers our tools, before ours it does not know them', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { a: () => 'a', b: () => 'b' }));
    const lc = langchain(registry.view());
    const search = toolSearch({ searchableTools: ['c__a'] });
    const go = ask().messages;
    const { tools } = (await sent('anthropic', [...lc.middleware, search], go)) as {
      tools: { name: string; defer_loading?: boolean }[];
    };
    const deferred = tools.filter(({ defer_loading }) => defer_loading === true);
    expect(deferred.map(({ name }) => name)).toEqual(['c__a']);
    await expect(sent('anthropic', [search, ...lc.middleware], go)).rejects.toThrow('sent nothing');
  });

  it('of many tools defers those of the view, for the provider to find; without it a problem says that they are many', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(
      capability('c', Object.fromEntries(['a', 'b', 'd'].map((name) => [name, () => name]))),
    );
    const problems: Problem[] = [];
    const onProblem = (problem: Problem) => void problems.push(problem);
    const go = ask().messages;
    const deferred = async (deferAbove: number) => {
      const lc = langchain(registry.view(), { deferAbove, onProblem });
      const { tools } = (await sent('anthropic', [...lc.middleware, toolSearch()], go)) as {
        tools: { name: string; defer_loading?: boolean }[];
      };
      return tools.filter((one) => one.defer_loading === true).map(({ name }) => name);
    };
    expect(await deferred(2)).toEqual(['c__a', 'c__b', 'c__d']);
    expect(problems).toEqual([]);
    registry.register(
      capability(
        'many',
        Object.fromEntries(Array.from({ length: 128 }, (_, i) => [`n${i}`, () => 'n'])),
      ),
    );
    await sent('anthropic', langchain(registry.view(), { onProblem }).middleware, go);
    expect(problems).toMatchObject([
      { code: 'tool-limit', message: expect.stringContaining('providerToolSearchMiddleware') },
    ]);
  });

  it('of everything that LangChain ships is the one that the README names', async () => {
    await using registry = new ExtensionRegistry();
    const ran = { ours: 0, own: 0 };
    registry.register(
      capability('c', {
        bad: () => {
          ran.ours++;
          throw new Error('boom');
        },
        good: () => 'good',
      }),
    );
    const own = tool(
      async () => {
        ran.own++;
        throw new Error('boom');
      },
      { name: 'own', description: 'own', schema: nothing },
    );
    const lc = langchain(registry.view());
    const selected = { tools: ['c__bad', 'c__good', 'own'] };
    const selector = fakeModel();
    for (let at = 0; at < 4; at++) selector.structuredResponse(selected);
    const result = await createAgent({
      model: script([{ name: 'c__bad' }, { name: 'c__good' }, { name: 'own' }]),
      tools: [own],
      middleware: [
        modelFallbackMiddleware(fakeModel()),
        modelRetry({ maxRetries: 0 }),
        humanReview({ interruptOn: { other: true } }),
        summarization({ model: fakeModel(), trigger: { messages: 99 } }),
        contextEditing({ edits: [new ClearToolUsesEdit({ trigger: { tokens: 9e5 } })] }),
        ...lc.middleware,
        toolCallLimit({ toolName: 'c__bad', runLimit: 1 }),
        toolError({ onError: (error: Error) => `told: ${error.message}` }),
        toolRetry({ maxRetries: 1, initialDelayMs: 0, jitter: false, onFailure: 'error' }),
        toolSelector({ model: selector, maxTools: 3 }),
      ],
    }).invoke(ask());
    expect(ran).toEqual({ ours: 1, own: 2 });
    expect(outcomes(result)).toContain('error:told: boom');
    expect(outcomes(result).map((text) => text.split(':')[0])).toEqual([
      'error',
      'success',
      'error',
    ]);
    expect(result.messages.at(-1)?.text).toBe('done');
  });
});
