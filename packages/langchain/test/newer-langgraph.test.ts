import { once } from 'node:events';

import { langchain } from '@patchbay/langchain';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent, HumanMessage, tool } from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask, capability, outcomes, script, slow } from './script.ts';

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
