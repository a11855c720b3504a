import { EventEmitter, once } from 'node:events';

import { MemorySaver } from '@langchain/langgraph';
import { langchain } from '@patchbay/langchain';
import type { Capability, TurnContext } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { AIMessage, createAgent, createMiddleware, fakeModel, toolStrategy } from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask, capability, outcomes, script } from './script.ts';

/** Tells which turns it was asked in, and hides `c__secret` where the user says so. */
function watching(): { readonly turns: TurnContext[]; readonly capability: Capability } {
  const turns: TurnContext[] = [];
  const prepareTurn = async (turn: TurnContext) => {
    turns.push(turn);
    return { hide: turn.userText === 'hide' ? ['c__secret'] : [] };
  };
  return { turns, capability: { id: 'watch', prepareTurn } };
}

describe('parallel runs of one agent object', () => {
  it('have a turn each: what is hidden in one runs in the other', async () => {
    await using registry = new ExtensionRegistry();
    const watch = watching();
    registry.register(watch.capability);
    registry.register(capability('c', { secret: () => 'told' }));
    const model = fakeModel();
    for (let run = 0; run < 2; run++) {
      model.respondWithTools([{ name: 'c__secret', args: {}, id: '1' }]);
    }
    model.respond(new AIMessage('done')).respond(new AIMessage('done'));
    const agent = createAgent({ model, ...langchain(registry.view({ session: 's' })) });
    const [hidden, open] = await Promise.all([
      agent.invoke(ask('hide')),
      agent.invoke(ask('show')),
    ]);
    expect(outcomes(hidden)).toEqual([expect.stringMatching(/^error:Error: .*may not be used/)]);
    expect(outcomes(open)).toEqual(['success:told']);
    expect(new Set(watch.turns.map(({ turnId }) => turnId)).size).toBe(2);
  });

  it('keep apart although both are given the very same messages, interleaved at every step', async () => {
    await using registry = new ExtensionRegistry();
    const watch = watching();
    registry.register(watch.capability);
    const gate = new EventEmitter();
    let waiting = 0;
    registry.register(
      capability('c', {
        meet: async () => {
          if (++waiting % 2 === 0) gate.emit('all');
          else await once(gate, 'all');
          return 'met';
        },
      }),
    );
    const model = fakeModel();
    for (let call = 0; call < 4; call++) {
      model.respondWithTools([{ name: 'c__meet', args: {}, id: `${call}` }]);
    }
    model.respond(new AIMessage('done')).respond(new AIMessage('done'));
    const agent = createAgent({ model, ...langchain(registry.view({ session: 's' })) });
    const same = ask();
    await Promise.all([agent.invoke(same), agent.invoke(same)]);
    const asked = watch.turns.map(({ turnId }) => turnId);
    expect(asked).toHaveLength(6);
    expect(asked.filter((id) => id === asked[0])).toHaveLength(3);
  });

  it('may bring a view each by context', async () => {
    await using registry = new ExtensionRegistry();
    for (const session of ['A', 'B']) {
      registry.register(capability('c', { who: () => session }), { session });
    }
    const model = fakeModel();
    for (let run = 0; run < 2; run++)
      model.respondWithTools([{ name: 'c__who', args: {}, id: '1' }]);
    model.respond(new AIMessage('done')).respond(new AIMessage('done'));
    const agent = createAgent({ model, ...langchain(registry.view()) });
    const results = await Promise.all(
      ['A', 'B'].map((session) =>
        agent.invoke(ask(), { context: { patchbay: registry.view({ session }) } }),
      ),
    );
    expect(results.map(outcomes)).toEqual([['success:A'], ['success:B']]);
  });

  it('are told when what they bring is no view', async () => {
    await using registry = new ExtensionRegistry();
    const model = fakeModel().respond(new AIMessage('x'));
    const agent = createAgent({ model, ...langchain(registry.view()) });
    await expect(agent.invoke(ask(), { context: { patchbay: {} } })).rejects.toThrow(
      /must be a view/,
    );
  });

  it('of an agent within its own tool have turns of their own', async () => {
    await using registry = new ExtensionRegistry();
    const watch = watching();
    registry.register(watch.capability);
    const view = registry.view({ session: 's' });
    const model = fakeModel();
    const agent = createAgent({ model, ...langchain(view) });
    registry.register(
      capability('c', {
        nest: async () => String((await agent.invoke(ask('inner'))).messages.at(-1)?.text),
      }),
    );
    model
      .respondWithTools([{ name: 'c__nest', args: {}, id: '1' }])
      .respond(new AIMessage('inner done'))
      .respond(new AIMessage('done'));
    expect(outcomes(await agent.invoke(ask('outer')))).toEqual(['success:inner done']);
    const [outer, inner, again] = watch.turns;
    expect(inner?.turnId).not.toBe(outer?.turnId);
    expect(again?.turnId).toBe(outer?.turnId);
  });
});

describe('the turn of a run', () => {
  it('gets what the user said, and ends with the run', async () => {
    await using registry = new ExtensionRegistry();
    const watch = watching();
    registry.register(watch.capability);
    let closed = 0;
    const join = createMiddleware({
      name: 'join',
      // Something is registered for this very turn: it goes when the turn ends.
      afterModel: () => {
        const turn = watch.turns[0]!.turnId;
        if (registry.inspect().every(({ id }) => id !== 'own')) {
          registry.register(
            { id: 'own', [Symbol.asyncDispose]: async () => void closed++ },
            { session: 's', turn },
          );
        }
      },
    });
    registry.register(capability('c', { a: () => 'a' }));
    const lc = langchain(registry.view({ session: 's' }));
    const agent = createAgent({
      model: script([{ name: 'c__a' }]),
      tools: [],
      middleware: [...lc.middleware, join],
    });
    await agent.invoke(ask('what the user said'));
    expect(watch.turns.map(({ userText }) => userText)).toEqual(
      Array.from({ length: 2 }, () => 'what the user said'),
    );
    expect(closed).toBe(1);
  });

  it('is another one for the next message of a thread, and stays out of the agent’s output', async () => {
    await using registry = new ExtensionRegistry();
    const watch = watching();
    registry.register(watch.capability);
    const model = fakeModel().respond(new AIMessage('1')).respond(new AIMessage('2'));
    const agent = createAgent({
      model,
      ...langchain(registry.view({ session: 's' })),
      checkpointer: new MemorySaver(),
    });
    const config = { configurable: { thread_id: 't' } };
    const first = await agent.invoke(ask('one'), config);
    await agent.invoke(ask('two'), config);
    expect(watch.turns.map(({ userText }) => userText)).toEqual(['one', 'two']);
    expect(watch.turns[0]?.turnId).not.toBe(watch.turns[1]?.turnId);
    expect(Object.keys(first)).toEqual(['messages']);
  });

  it('does not fail a run whose view was closed when it was done', async () => {
    await using registry = new ExtensionRegistry();
    const view = registry.view({ session: 's' });
    const close = createMiddleware({ name: 'close', afterModel: () => view.close() });
    const lc = langchain(view);
    const agent = createAgent({
      model: fakeModel().respond(new AIMessage('x')),
      tools: [],
      middleware: [...lc.middleware, close],
    });
    expect((await agent.invoke(ask())).messages.at(-1)?.text).toBe('x');
  });

  it('answers a call whose view was closed meanwhile, before the next model call fails', async () => {
    await using registry = new ExtensionRegistry();
    const view = registry.view({ session: 's' });
    registry.register(capability('c', { a: () => 'a' }));
    const close = createMiddleware({ name: 'close', afterModel: () => view.close() });
    const lc = langchain(view);
    const agent = createAgent({
      model: script([{ name: 'c__a' }]),
      tools: [],
      middleware: [...lc.middleware, close],
      checkpointer: new MemorySaver(),
    });
    const config = { configurable: { thread_id: 't' } };
    await expect(agent.invoke(ask(), config)).rejects.toThrow(/view was closed/);
    const { values } = await agent.graph.getState(config);
    expect(outcomes(values)).toEqual([expect.stringMatching(/^error:Error: .*view was closed/)]);
  });
});

describe('an agent with this middleware', () => {
  it('streams updates without the history again', async () => {
    await using registry = new ExtensionRegistry();
    const model = fakeModel().respond(new AIMessage('1')).respond(new AIMessage('2'));
    const agent = createAgent({
      model,
      ...langchain(registry.view({ session: 's' })),
      checkpointer: new MemorySaver(),
    });
    const config = { configurable: { thread_id: 't' } };
    await agent.invoke(ask('one'), config);
    const seen: string[] = [];
    const updates = await agent.stream(ask('two'), { ...config, streamMode: 'updates' });
    for await (const update of updates) {
      for (const node of Object.values(update)) {
        seen.push(...(node?.messages ?? []).map((message: { text: string }) => message.text));
      }
    }
    expect(seen).toEqual(['2']);
  });

  it('may be named, and two views of one scope must be', async () => {
    await using registry = new ExtensionRegistry();
    const scope = { session: 'user:42', agent: 'coder' };
    const twice = () => [langchain(registry.view(scope)), langchain(registry.view(scope))] as const;
    const model = fakeModel().respond(new AIMessage('x'));
    const [a, b] = twice();
    expect(() => createAgent({ model, middleware: [...a.middleware, ...b.middleware] })).toThrow(
      /defined multiple times/,
    );
    const named = langchain(registry.view(scope), { name: 'other' });
    const agent = createAgent({ model, middleware: [...a.middleware, ...named.middleware] });
    expect((await agent.invoke(ask())).messages.at(-1)?.text).toBe('x');
  });

  it('still answers in the form that the agent asks for', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { a: () => 'a ran' }));
    const answer = {
      title: 'Answer',
      type: 'object' as const,
      properties: { n: { type: 'number' } },
    };
    const model = fakeModel()
      .respondWithTools([{ name: 'c__a', args: {}, id: '1' }])
      .respondWithTools([{ name: 'Answer', args: { n: 5 }, id: '2' }]);
    const agent = createAgent({
      model,
      ...langchain(registry.view({ session: 's' })),
      responseFormat: toolStrategy(answer),
    });
    const result = await agent.invoke(ask());
    expect(outcomes(result)[0]).toBe('success:a ran');
    expect(result.structuredResponse).toEqual({ n: 5 });
  });
});
