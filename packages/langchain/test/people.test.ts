import { Command, interrupt, MemorySaver } from '@langchain/langgraph';
import { interruptOn, langchain } from '@patchbay/langchain';
import type { ApprovalPolicy } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent, createMiddleware, type Decision, type HITLRequest } from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask, capability, outcomes, script } from './script.ts';
import { humanReview, toolCallLimit } from './shipped-middleware.ts';

const config = { configurable: { thread_id: 't' } };
const resume = (...decisions: Decision[]) => new Command({ resume: { decisions } });

describe('humanInTheLoopMiddleware', () => {
  it.each<[Decision, string, number]>([
    [{ type: 'approve' }, 'success:paid 5', 1],
    [{ type: 'edit', editedAction: { name: 'c__pay', args: { x: 7 } } }, 'success:paid 7', 1],
    [{ type: 'reject', message: 'no' }, 'error:no', 0],
  ])('works on tools that the graph does not know: %j', async (decision, outcome, calls) => {
    await using registry = new ExtensionRegistry();
    let paid = 0;
    registry.register(
      capability('c', {
        pay: ({ x }) => {
          paid++;
          return `paid ${String(x)}`;
        },
      }),
    );
    const lc = langchain(registry.view());
    const agent = createAgent({
      model: script([{ name: 'c__pay', args: { x: 5 } }]),
      tools: [],
      middleware: [humanReview({ interruptOn: { c__pay: true } }), ...lc.middleware],
      checkpointer: new MemorySaver(),
    });
    const waiting = await agent.invoke(ask(), config);
    expect(waiting.__interrupt__).toHaveLength(1);
    expect(paid).toBe(0);
    expect(outcomes(await agent.invoke(resume(decision), config))).toEqual([outcome]);
    expect(paid).toBe(calls);
  });

  it('answers with an error when the tool went away while the person was asked', async () => {
    await using registry = new ExtensionRegistry();
    const handle = registry.register(capability('c', { pay: () => 'never' }));
    const lc = langchain(registry.view());
    const agent = createAgent({
      model: script([{ name: 'c__pay' }]),
      tools: [],
      middleware: [humanReview({ interruptOn: { c__pay: true } }), ...lc.middleware],
      checkpointer: new MemorySaver(),
    });
    await agent.invoke(ask(), config);
    await handle.close();
    expect(outcomes(await agent.invoke(resume({ type: 'approve' }), config))).toEqual([
      expect.stringMatching(/^error:Error: .*"c__pay" is not available/),
    ]);
  });

  it('leaves a usable thread after one rejection among several calls (langchainjs-11125, -10186, -11391)', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { safe: () => 's', pay: () => 'p', del: () => 'd' }));
    const model = script([{ name: 'c__safe' }, { name: 'c__pay' }, { name: 'c__del' }]);
    const lc = langchain(registry.view());
    const agent = createAgent({
      model,
      tools: [],
      middleware: [humanReview({ interruptOn: { c__pay: true, c__del: true } }), ...lc.middleware],
      checkpointer: new MemorySaver(),
    });
    await agent.invoke(ask(), config);
    await agent.invoke(resume({ type: 'approve' }, { type: 'reject', message: 'no' }), config);
    const sent = model.calls.at(-1)?.messages ?? [];
    const calls = sent.flatMap((message) =>
      'tool_calls' in message ? (message.tool_calls as { id: string }[]) : [],
    );
    const results = sent.flatMap((message) =>
      'tool_call_id' in message ? [message.tool_call_id] : [],
    );
    expect(new Set(results)).toEqual(new Set(calls.map(({ id }) => id)));
    expect(results).toHaveLength(calls.length);
  });

  it('is told by annotations which tools to ask for', async () => {
    await using registry = new ExtensionRegistry();
    const call = () => 'x';
    registry.register(
      capability('c', {
        read: { call, annotations: { readOnlyHint: true } },
        add: { call, annotations: { destructiveHint: false } },
        del: { call, annotations: { destructiveHint: true } },
        unsaid: { call },
      }),
    );
    const view = registry.view();
    expect(await interruptOn(view)).toEqual({ c__del: true, c__unsaid: true });
    expect(await interruptOn(view, ({ name }) => name.endsWith('read'))).toEqual({ c__read: true });
  });
});

describe('an approval policy that wants a person asked', () => {
  const policy: ApprovalPolicy = ({ tool }) => (tool.id.name === 'pay' ? 'ask' : 'allow');
  const paying = (paid: unknown[], id = 'c') =>
    capability(id, {
      pay: ({ x }) => {
        paid.push(x);
        return `paid ${String(x)}`;
      },
      look: () => 'looked',
    });

  it.each<[Decision, RegExp, unknown[]]>([
    [{ type: 'approve' }, /^success:paid 5$/, [5]],
    [{ type: 'edit', editedAction: { name: 'c__pay', args: { x: 7 } } }, /^success:paid 7$/, [7]],
    [
      { type: 'edit', editedAction: { name: 'c__pay', args: { x: 'y' } } },
      /^error:Error: .*x/s,
      [],
    ],
    [
      { type: 'edit', editedAction: { name: 'c__look', args: {} } },
      /^error:Error: .*not understood/,
      [],
    ],
    [{ type: 'reject', message: 'too dear' }, /^error:Error: .*rejected by a person: too dear/, []],
  ])(
    'interrupts the run with the same question and answers: %j',
    async (decision, outcome, calls) => {
      await using registry = new ExtensionRegistry({ approval: policy });
      const paid: unknown[] = [];
      registry.register(paying(paid));
      const agent = createAgent({
        model: script([{ name: 'c__pay', args: { x: 5 } }, { name: 'c__look' }]),
        ...langchain(registry.view()),
        checkpointer: new MemorySaver(),
      });
      const waiting = await agent.invoke(ask(), config);
      expect(waiting.__interrupt__?.[0]?.value).toMatchObject({
        actionRequests: [{ name: 'c__pay', args: { x: 5 } }],
        reviewConfigs: [{ actionName: 'c__pay' }],
      });
      expect(paid).toEqual([]);
      const result = await agent.invoke(resume(decision), config);
      expect(outcomes(result)).toEqual([expect.stringMatching(outcome), 'success:looked']);
      expect(paid).toEqual(calls);
    },
  );

  const two = [
    { name: 'c__pay', args: { x: 1 }, id: '1' },
    { name: 'c__look', id: '2' },
    { name: 'c__pay', args: { x: 2 }, id: '3' },
    // Would fail anyway: nobody is asked.
    { name: 'c__pay', args: { x: 'no number' }, id: '4' },
  ];

  it.each(['v1', 'v2'] as const)(
    'is asked once for all calls of a step, and a decision is for one call (createAgent %s)',
    async (version) => {
      await using registry = new ExtensionRegistry({ approval: policy });
      const paid: unknown[] = [];
      registry.register(paying(paid));
      const agent = createAgent({
        model: script(two),
        ...langchain(registry.view()),
        checkpointer: new MemorySaver(),
        version,
      });
      const { __interrupt__: asked = [] } = await agent.invoke(ask(), config);
      expect(asked.map(({ value }) => (value as HITLRequest).actionRequests)).toMatchObject([
        [{ args: { x: 1 } }, { args: { x: 2 } }],
      ]);
      const decisions: Decision[] = [{ type: 'reject', message: 'no' }, { type: 'approve' }];
      expect(outcomes(await agent.invoke(resume(...decisions), config))).toEqual([
        expect.stringMatching(/^error:Error: .*rejected by a person: no/),
        'success:looked',
        'success:paid 2',
        expect.stringMatching(/^error:Error: Invalid arguments/),
      ]);
      expect(paid).toEqual([2]);
    },
  );

  it('takes one decision on two calls for neither', async () => {
    await using registry = new ExtensionRegistry({ approval: policy });
    const paid: unknown[] = [];
    registry.register(paying(paid));
    const agent = createAgent({
      model: script(two),
      ...langchain(registry.view()),
      checkpointer: new MemorySaver(),
    });
    await agent.invoke(ask(), config);
    const result = await agent.invoke(resume({ type: 'approve' }), config);
    expect(outcomes(result).filter((text) => text.includes('not understood'))).toHaveLength(2);
    expect(paid).toEqual([]);
  });

  it('asks again where the call is another one by the time that it is made', async () => {
    await using registry = new ExtensionRegistry({ approval: policy });
    const paid: unknown[] = [];
    registry.register(paying(paid));
    const edits = createMiddleware({
      name: 'edits',
      wrapToolCall: (request, handler) =>
        handler({ ...request, toolCall: { ...request.toolCall, args: { x: 500 } } }),
    });
    const lc = langchain(registry.view());
    const agent = createAgent({
      model: script([{ name: 'c__pay', args: { x: 5 } }]),
      tools: [],
      middleware: [edits, ...lc.middleware],
      checkpointer: new MemorySaver(),
    });
    await agent.invoke(ask(), config);
    const again = await agent.invoke(resume({ type: 'approve' }), config);
    expect(again.__interrupt__).toMatchObject([
      { value: { actionRequests: [{ args: { x: 500 } }] } },
    ]);
    expect(paid).toEqual([]);
    await agent.invoke(resume({ type: 'approve' }), config);
    expect(paid).toEqual([500]);
  });

  it('is not asked about a call that another middleware has answered', async () => {
    await using registry = new ExtensionRegistry({ approval: policy });
    const paid: unknown[] = [];
    registry.register(paying(paid));
    const lc = langchain(registry.view());
    const agent = createAgent({
      model: script(two),
      tools: [],
      middleware: [...lc.middleware, toolCallLimit({ toolName: 'c__pay', runLimit: 1 })],
      checkpointer: new MemorySaver(),
    });
    const waiting = await agent.invoke(ask(), config);
    expect(waiting.__interrupt__).toMatchObject([
      { value: { actionRequests: [{ args: { x: 1 } }] } },
    ]);
    await agent.invoke(resume({ type: 'approve' }), config);
    expect(paid).toEqual([1]);
  });

  it('is asked by two views of one agent, each for its own tools', async () => {
    await using registry = new ExtensionRegistry({ approval: policy });
    const paid: unknown[] = [];
    registry.register(paying(paid), { session: '1' });
    registry.register(paying(paid, 'd'), { session: '2' });
    const parts = ['1', '2'].map((session) => langchain(registry.view({ session })));
    const agent = createAgent({
      model: script([
        { name: 'c__pay', args: { x: 1 } },
        { name: 'd__pay', args: { x: 2 } },
      ]),
      tools: [],
      middleware: parts.flatMap(({ middleware }) => middleware),
      checkpointer: new MemorySaver(),
    });
    await agent.invoke(ask(), config);
    await agent.invoke(resume({ type: 'approve' }), config);
    expect(paid).toEqual([]);
    const result = await agent.invoke(resume({ type: 'approve' }), config);
    expect(outcomes(result)).toEqual(['success:paid 1', 'success:paid 2']);
  });

  it('is a refusal where nobody can be asked', async () => {
    await using registry = new ExtensionRegistry({ approval: policy });
    const paid: unknown[] = [];
    registry.register(paying(paid));
    const agent = createAgent({
      model: script([{ name: 'c__pay', args: { x: 5 } }]),
      ...langchain(registry.view()),
    });
    expect(outcomes(await agent.invoke(ask()))).toEqual([
      expect.stringMatching(/^error:Error: .*needs an approval/),
    ]);
    expect(paid).toEqual([]);
  });
});

describe('an interrupt', () => {
  it('inside a tool reaches the graph, and the tool goes on with the answer', async () => {
    await using registry = new ExtensionRegistry();
    let fast = 0;
    registry.register(
      capability('c', {
        asks: () => `got ${String(interrupt('name?'))}`,
        fast: () => `fast ${String(++fast)}`,
      }),
    );
    const agent = createAgent({
      model: script([{ name: 'c__asks' }, { name: 'c__fast' }]),
      ...langchain(registry.view()),
      checkpointer: new MemorySaver(),
    });
    const waiting = await agent.invoke(ask(), config);
    expect(waiting.__interrupt__?.[0]?.value).toBe('name?');
    const result = await agent.invoke(new Command({ resume: 'Bo' }), config);
    expect(outcomes(result)).toEqual(['success:got Bo', 'success:fast 1']);
  });

  it('is resumed by a fresh agent over a fresh registry, in the same turn, with what it hides hidden', async () => {
    const checkpointer = new MemorySaver();
    const turns: string[] = [];
    const board = (name: string) => {
      const registry = new ExtensionRegistry();
      registry.register(
        capability(
          'c',
          { pay: () => `paid by ${name}`, secret: () => 'never' },
          {
            prepareTurn: async ({ turnId, userText }) => {
              turns.push(`${turnId} ${userText}`);
              return { hide: ['c__secret'] };
            },
          },
        ),
      );
      return registry;
    };
    const agentOf = (registry: ExtensionRegistry) => {
      const lc = langchain(registry.view({ session: 's' }));
      return createAgent({
        model: script([{ name: 'c__pay' }, { name: 'c__secret' }]),
        tools: [],
        middleware: [humanReview({ interruptOn: { c__pay: true } }), ...lc.middleware],
        checkpointer,
      });
    };
    await using first = board('first');
    await agentOf(first).invoke(ask(), config);
    await using second = board('second');
    const fresh = agentOf(second);
    const result = await fresh.invoke(resume({ type: 'approve' }), config);
    expect(outcomes(result).toSorted()).toEqual([
      expect.stringMatching(/^error:Error: .*may not be used/),
      'success:paid by second',
    ]);
    expect(new Set(turns).size).toBe(1);
    expect(turns[0]).toMatch(/ go$/);
  });

  it('of a run that began without this middleware is resumed all the same', async () => {
    const checkpointer = new MemorySaver();
    const asks = () => humanReview({ interruptOn: { c__pay: true } });
    // Something that keeps the tool node in the graph.
    const before = createMiddleware({
      name: 'before',
      wrapToolCall: (request, handler) => handler(request),
    });
    await createAgent({
      model: script([{ name: 'c__pay' }]),
      tools: [],
      middleware: [asks(), before],
      checkpointer,
    }).invoke(ask(), config);
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { pay: () => 'paid' }));
    const lc = langchain(registry.view({ session: 's' }));
    const agent = createAgent({
      model: script([]),
      tools: [],
      middleware: [asks(), before, ...lc.middleware],
      checkpointer,
    });
    const result = await agent.invoke(resume({ type: 'approve' }), config);
    expect(outcomes(result)).toEqual(['success:paid']);
  });
});
