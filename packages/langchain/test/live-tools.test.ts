import { EventEmitter, once } from 'node:events';

import { ExtensionRegistry } from '@patchbay/registry';
import { PatchbayError, type Problem } from '@patchbay/protocols';
import { AIMessage, createAgent, createMiddleware, fakeModel, tool } from 'langchain';
import { describe, expect, it } from 'vitest';

import { langchain } from '@patchbay/langchain';
import { ask, capability, kinds, outcomes, script, toolMessages } from './script.ts';

const nothing = { type: 'object', properties: {} } as const;

describe('tools of a view', () => {
  it('run although the graph never heard of them, also those that appear while the run goes (langgraphjs-1934, langchainjs-10543)', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(
      capability('first', {
        a: ({ x }) => {
          registry.register(capability('second', { b: () => 'b ran' }));
          return `a got ${String(x)}`;
        },
      }),
    );
    const model = script([{ name: 'first__a', args: { x: 1 } }], [{ name: 'second__b' }]);
    const agent = createAgent({ model, ...langchain(registry.view()) });
    expect(outcomes(await agent.invoke(ask()))).toEqual(['success:a got 1', 'success:b ran']);
  });

  it('that went away between the model and the call are answered with an error', async () => {
    await using registry = new ExtensionRegistry();
    const handle = registry.register(capability('c', { goes: () => 'never' }));
    const lc = langchain(registry.view());
    const cut = createMiddleware({ name: 'cut', afterModel: () => handle.close() });
    const agent = createAgent({
      model: script([{ name: 'c__goes' }], [{ name: 'c__goes' }]),
      tools: lc.tools,
      middleware: [cut, ...lc.middleware],
    });
    const result = await agent.invoke(ask());
    expect(outcomes(result)).toEqual([
      expect.stringMatching(/^error:Error: .*"c__goes" is not available/),
      expect.stringMatching(/^error:Error: .*"c__goes" is not available/),
    ]);
    expect(toolMessages(result)[0]?.artifact.patchbay.error.code).toBe('tool-unavailable');
  });

  it('that are hidden in this turn are neither offered nor run', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(
      capability(
        'c',
        { open: () => 'open', secret: () => 'never' },
        {
          prepareTurn: async ({ userText }) => ({ hide: userText === 'go' ? ['c__secret'] : [] }),
        },
      ),
    );
    const seen: string[][] = [];
    const lc = langchain(registry.view());
    const spy = createMiddleware({
      name: 'spy',
      wrapModelCall: (request, handler) => {
        seen.push(request.tools.map(({ name }) => String(name)));
        return handler(request);
      },
    });
    const agent = createAgent({
      model: script([{ name: 'c__secret' }, { name: 'c__open' }]),
      tools: lc.tools,
      middleware: [...lc.middleware, spy],
    });
    const result = await agent.invoke(ask());
    expect(seen[0]).toEqual(['c__open']);
    expect(outcomes(result)).toEqual([
      expect.stringMatching(/^error:Error: .*"c__secret" may not be used at the moment/),
      'success:open',
    ]);
  });

  it('that nobody knows are left to LangChain', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { a: () => 'a' }));
    const agent = createAgent({
      model: script([{ name: 'never' }]),
      ...langchain(registry.view()),
    });
    expect(outcomes(await agent.invoke(ask()))).toEqual([
      expect.stringMatching(/^error:.*never is not a valid tool/),
    ]);
  });

  it('of the name of an own tool give way to it, and that is reported once', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { own: () => 'from the view' }));
    const problems: Problem[] = [];
    const lc = langchain(registry.view(), { onProblem: (problem) => problems.push(problem) });
    const own = tool(async () => 'own', { name: 'c__own', description: 'own', schema: nothing });
    const agent = createAgent({
      model: script([{ name: 'c__own' }]),
      tools: [own, ...lc.tools],
      middleware: lc.middleware,
    });
    expect(outcomes(await agent.invoke(ask()))).toEqual([expect.stringMatching(/:own$/)]);
    expect(problems).toMatchObject([{ source: 'c', code: 'tool-name', severity: 'warning' }]);
  });

  it('keep their face object while they do not change', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { a: () => 'a' }));
    const faces = new Set<unknown>();
    const lc = langchain(registry.view());
    const spy = createMiddleware({
      name: 'spy',
      wrapModelCall: (request, handler) => {
        for (const face of request.tools) faces.add(face);
        return handler(request);
      },
    });
    const agent = createAgent({
      model: script([{ name: 'c__a' }], [{ name: 'c__a' }]),
      tools: lc.tools,
      middleware: [...lc.middleware, spy],
    });
    await agent.invoke(ask());
    expect(faces.size).toBe(1);
  });

  it('of two views serve one agent', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { who: () => 'one' }), { session: '1' });
    registry.register(capability('d', { who: () => 'two' }), { session: '2' });
    const [one, two] = [
      langchain(registry.view({ session: '1' })),
      langchain(registry.view({ session: '2' })),
    ];
    const agent = createAgent({
      model: script([{ name: 'c__who' }, { name: 'd__who' }]),
      tools: [],
      middleware: [...one.middleware, ...two.middleware],
    });
    expect(outcomes(await agent.invoke(ask()))).toEqual(['success:one', 'success:two']);
  });
});

describe('a failure', () => {
  it('of a tool is an answer, says that it is an error, and does not touch its siblings', async () => {
    await using registry = new ExtensionRegistry();
    const failed = new EventEmitter();
    registry.register(
      capability('c', {
        bad: () => {
          failed.emit('now');
          throw new TypeError('boom');
        },
        slow: async (_args, { signal }) => {
          await once(failed, 'now');
          await new Promise((resolve) => setImmediate(resolve));
          return signal?.aborted === true ? 'aborted' : 'finished';
        },
      }),
    );
    const agent = createAgent({
      model: script([{ name: 'c__slow' }, { name: 'c__bad' }]),
      ...langchain(registry.view()),
    });
    const result = await agent.invoke(ask());
    expect(outcomes(result)).toEqual([
      'success:finished',
      expect.stringMatching(/^error:Error: .*boom/),
    ]);
    expect(toolMessages(result)[1]?.artifact.patchbay.error).toMatchObject({
      code: 'source-failed',
      source: 'c',
    });
  });

  it('keeps the code and the source of a patchbay error for programs', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(
      capability('c', {
        lost: () => {
          throw new PatchbayError('outcome-unknown', 'It may have run.', { source: 'c' });
        },
      }),
    );
    const agent = createAgent({
      model: script([{ name: 'c__lost' }]),
      ...langchain(registry.view()),
    });
    const result = await agent.invoke(ask());
    expect(outcomes(result)).toEqual([expect.stringMatching(/^error:Error: .*It may have run\./)]);
    expect(toolMessages(result)[0]?.artifact.patchbay.error.code).toBe('outcome-unknown');
  });

  it('of the arguments names each violation and does not reach the tool', async () => {
    await using registry = new ExtensionRegistry();
    let calls = 0;
    registry.register(capability('c', { a: () => String(++calls) }));
    const agent = createAgent({
      model: script([{ name: 'c__a', args: { x: 'one' } }]),
      ...langchain(registry.view()),
    });
    const result = await agent.invoke(ask());
    expect(calls).toBe(0);
    expect(outcomes(result)).toEqual([expect.stringMatching(/^error:Error: .*c__a.*x/s)]);
    expect(toolMessages(result)[0]?.artifact.patchbay.error.code).toBe('invalid-arguments');
  });

  it('of the agent’s own tool is what createAgent makes of it without us (langchain-33153, langchainjs-11154)', async () => {
    await using registry = new ExtensionRegistry();
    const boom = tool(
      async () => {
        throw new Error('own boom');
      },
      { name: 'own', description: 'own', schema: nothing },
    );
    const strict = tool(async () => 'never', {
      name: 'strict',
      description: 'strict',
      schema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    });
    const steps = () => script([{ name: 'own' }, { name: 'strict', args: { n: 'x' } }]);
    const alone = await createAgent({ model: steps(), tools: [boom, strict] }).invoke(ask());
    const lc = langchain(registry.view());
    const beside = await createAgent({
      model: steps(),
      tools: [boom, strict, ...lc.tools],
      middleware: lc.middleware,
    }).invoke(ask());
    // LangChain puts a stack trace into the text of invalid arguments: that is the only difference.
    const said = (of: typeof alone) =>
      toolMessages(of).map(({ text }) => text.replaceAll(/^ +at .*\n/gm, ''));
    expect(said(beside)).toEqual(said(alone));
    expect(toolMessages(beside).map(({ status }) => status)).toEqual(['error', 'error']);
    expect(outcomes(beside)[0]).toBe('error:Error: own boom\n Please fix your mistakes.');
  });

  it('of the agent’s own tool ends the run where that is asked for, or another middleware means it', async () => {
    await using registry = new ExtensionRegistry();
    const boom = tool(
      async () => {
        throw new Error('own boom');
      },
      { name: 'own', description: 'own', schema: nothing },
    );
    const throws = langchain(registry.view(), { ownToolErrors: 'throw' });
    await expect(
      createAgent({
        model: script([{ name: 'own' }]),
        tools: [boom],
        middleware: throws.middleware,
      }).invoke(ask()),
    ).rejects.toThrow('own boom');

    const lc = langchain(registry.view());
    const refuses = createMiddleware({
      name: 'refuses',
      wrapToolCall: () => {
        throw new Error('not in this house');
      },
    });
    await expect(
      createAgent({
        model: script([{ name: 'own' }]),
        tools: [boom],
        middleware: [...lc.middleware, refuses],
      }).invoke(ask()),
    ).rejects.toThrow('not in this house');
  });
});

describe('instructions', () => {
  it('follow the system prompt as blocks, static ones first, and change with their source', async () => {
    await using registry = new ExtensionRegistry();
    let version = 1;
    registry.register(
      capability(
        'c',
        { a: () => String(++version) },
        {
          instructions: async () => [{ source: 'c', kind: 'static', text: 'catalogue' }],
          prepareTurn: async ({ userText }) => ({
            instructions: [{ source: 'c', kind: 'dynamic', text: `${userText} v${version}` }],
          }),
        },
      ),
    );
    const model = script([{ name: 'c__a' }]);
    const agent = createAgent({ model, systemPrompt: 'You are X.', ...langchain(registry.view()) });
    await agent.invoke(ask());
    const systems = model.calls.map(({ messages }) => messages[0]?.content);
    expect(systems).toEqual([
      [
        { type: 'text', text: 'You are X.' },
        { type: 'text', text: expect.stringContaining('catalogue') },
        { type: 'text', text: expect.stringContaining('go v1') },
      ],
      [
        { type: 'text', text: 'You are X.' },
        { type: 'text', text: expect.stringContaining('catalogue') },
        { type: 'text', text: expect.stringContaining('go v2') },
      ],
    ]);
  });

  it('stand alone where the agent has no system prompt, and leave no trace where there are none', async () => {
    await using registry = new ExtensionRegistry();
    const handle = registry.register(
      capability(
        'c',
        {},
        { instructions: async () => [{ source: 'c', kind: 'static', text: 'only' }] },
      ),
    );
    const model = fakeModel().respond(new AIMessage('1')).respond(new AIMessage('2'));
    const agent = createAgent({ model, ...langchain(registry.view()) });
    await agent.invoke(ask());
    await handle.close();
    await agent.invoke(ask());
    expect(model.calls[0]?.messages[0]?.content).toEqual([
      { type: 'text', text: expect.stringContaining('only') },
    ]);
    expect(kinds(model.calls[1]?.messages ?? [])).toBe('human');
  });
});
