import { langchain } from '@patchbay/langchain';
import { ExtensionRegistry } from '@patchbay/registry';
import { memorySkills, SkillManagerCapability } from '@patchbay/skills';
import {
  AIMessage,
  ClearToolUsesEdit,
  createAgent,
  createMiddleware,
  fakeModel,
  modelFallbackMiddleware,
  tool,
  type AgentMiddleware,
} from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask, capability, kinds, outcomes, script } from './script.ts';
import {
  contextEditing,
  humanReview,
  modelRetry,
  summarization,
  todoList,
  toolCallLimit,
  toolRetry,
  toolSelector,
} from './shipped-middleware.ts';

/** Where LangChain's own middlewares belong beside this one, as the README says. */
const A_CALL = { name: 'c__a', args: {} };

describe('the place in the list', () => {
  it('llmToolSelector after ours selects among our tools, before ours it does not see them', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { a: () => 'a', b: () => 'b', d: () => 'd' }));
    const bound = async (ours: 'first' | 'last') => {
      const names: string[][] = [];
      const spy = createMiddleware({
        name: 'spy',
        wrapModelCall: (request, handler) => {
          names.push(request.tools.map(({ name }) => String(name)));
          return handler(request);
        },
      });
      const selector = toolSelector({
        model: fakeModel().structuredResponse({ tools: ['c__b'] }),
        maxTools: 1,
      });
      const lc = langchain(registry.view());
      await createAgent({
        model: fakeModel().respond(new AIMessage('done')),
        middleware:
          ours === 'first' ? [...lc.middleware, selector, spy] : [selector, ...lc.middleware, spy],
      }).invoke(ask());
      return names[0];
    };
    expect(await bound('first')).toEqual(['c__b']);
    expect(await bound('last')).toEqual(['c__a', 'c__b', 'c__d']);
  });

  it('toolRetry after ours retries the agent’s own tools, and ours run once all the same', async () => {
    await using registry = new ExtensionRegistry();
    const ran = { ours: 0, own: 0 };
    registry.register(
      capability('c', {
        bad: () => {
          ran.ours++;
          throw new Error('boom');
        },
      }),
    );
    const own = tool(
      async () => {
        ran.own++;
        throw new Error('boom');
      },
      { name: 'own', description: 'own', schema: { type: 'object', properties: {} } },
    );
    const lc = langchain(registry.view());
    const retry = toolRetry({ maxRetries: 2, initialDelayMs: 0, jitter: false });
    const result = await createAgent({
      model: script([{ name: 'c__bad' }, { name: 'own' }]),
      tools: [own],
      middleware: [...lc.middleware, retry],
    }).invoke(ask());
    expect(ran).toEqual({ ours: 1, own: 3 });
    expect(outcomes(result).map((text) => text.split(':')[0])).toEqual(['error', 'error']);
  });

  it('toolCallLimit counts our tools by name', async () => {
    await using registry = new ExtensionRegistry();
    let ran = 0;
    registry.register(capability('c', { a: () => String(++ran) }));
    const lc = langchain(registry.view());
    const limit = toolCallLimit({ toolName: 'c__a', runLimit: 1 });
    const result = await createAgent({
      model: script([{ name: 'c__a' }], [{ name: 'c__a' }]),
      middleware: [limit, ...lc.middleware],
    }).invoke(ask());
    expect(ran).toBe(1);
    expect(outcomes(result)[0]).toBe('success:1');
  });

  it('modelFallback before ours shapes each attempt for its own model, after ours all for the first', async () => {
    await using registry = new ExtensionRegistry();
    const image = { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' } as const;
    registry.register(capability('c', { shot: () => ({ content: [image] }) }));
    const lc = langchain(registry.view());
    const kindsWith = async (order: (fallback: AgentMiddleware) => AgentMiddleware[]) => {
      const first = script([{ name: 'c__shot' }]);
      first._llmType = () => 'anthropic';
      const down = fakeModel().alwaysThrow(new Error('down'));
      down._llmType = () => 'anthropic';
      const { messages } = await createAgent({ model: first, ...lc }).invoke(ask());
      const second = fakeModel().respond(new AIMessage('ok'));
      const middleware = order(modelFallbackMiddleware(second));
      await createAgent({ model: down, middleware }).invoke({ messages: messages.slice(0, -1) });
      return kinds(second.calls[0]?.messages ?? []);
    };
    expect(await kindsWith((fallback) => [fallback, ...lc.middleware])).toBe('human,ai,tool,human');
    expect(await kindsWith((fallback) => [...lc.middleware, fallback])).toBe('human,ai,tool');
  });

  it('modelRetry before ours looks at the view anew for each attempt', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { a: () => 'a' }));
    const offered: string[][] = [];
    const flaky = createMiddleware({
      name: 'flaky',
      wrapModelCall: (request, handler) => {
        offered.push(request.tools.map(({ name }) => String(name)));
        if (offered.length > 1) return handler(request);
        registry.register(capability('d', { b: () => 'b' }));
        throw new Error('busy');
      },
    });
    const lc = langchain(registry.view());
    const retry = modelRetry({ maxRetries: 1, initialDelayMs: 0, jitter: false });
    await createAgent({
      model: fakeModel().respond(new AIMessage('done')),
      middleware: [retry, ...lc.middleware, flaky],
    }).invoke(ask());
    expect(offered).toEqual([['c__a'], ['c__a', 'd__b']]);
  });

  it.each(['before', 'after'] as const)(
    'summarization, todoList, contextEditing and humanInTheLoop work %s ours',
    async (place) => {
      await using registry = new ExtensionRegistry();
      registry.register(capability('c', { a: () => 'a ran' }));
      const lc = langchain(registry.view());
      const summarizer = fakeModel();
      for (let at = 0; at < 9; at++) summarizer.respond(new AIMessage('SUMMARY'));
      const theirs = [
        humanReview({ interruptOn: { other: true } }),
        todoList(),
        contextEditing({
          edits: [new ClearToolUsesEdit({ trigger: { tokens: 1 }, keep: { messages: 1 } })],
        }),
        summarization({ model: summarizer, trigger: { messages: 4 }, keep: { messages: 2 } }),
      ];
      const todos = [{ content: 'x', status: 'pending' }];
      const model = script(
        [{ name: 'c__a' }, { name: 'write_todos', args: { todos } }],
        [{ name: 'c__a' }],
      );
      const result = await createAgent({
        model,
        middleware:
          place === 'before' ? [...theirs, ...lc.middleware] : [...lc.middleware, ...theirs],
      }).invoke(ask());
      expect(result.messages.at(-1)?.text).toBe('done');
      expect(summarizer.calls.length).toBeGreaterThan(0);
      expect(outcomes(result)).toContain('success:a ran');
    },
  );

  const summarizing = () => {
    const model = fakeModel();
    for (let at = 0; at < 9; at++) model.respond(new AIMessage('SUMMARY'));
    return summarization({ model, trigger: { messages: 6 }, keep: { messages: 2 } });
  };
  const clearing = () =>
    contextEditing({
      edits: [new ClearToolUsesEdit({ trigger: { tokens: 100 }, keep: { messages: 2 } })],
    });

  it.each([
    ['summarized away', summarizing],
    ['cleared by contextEditing before ours', clearing],
  ] as const)(
    'an activated skill is said again once its text was %s, and not before',
    async (_, loses) => {
      await using registry = new ExtensionRegistry();
      registry.register(capability('c', { a: () => 'a ran '.repeat(200) }));
      registry.register(
        memorySkills({
          id: 'mine',
          skills: [{ name: 'careful', description: 'About care.', body: 'Never delete.' }],
        }),
      );
      registry.register(new SkillManagerCapability());
      const lc = langchain(registry.view({ session: 's' }));
      // A scripted model repeats in its answers what it was given: here it says nothing.
      const calls = [{ name: 'activate_skill', args: { name: 'careful' } }, A_CALL, A_CALL];
      const model = fakeModel();
      for (const [at, call] of calls.entries()) {
        const tool_calls = [{ ...call, id: String(at), type: 'tool_call' as const }];
        model.respond(new AIMessage({ content: '', tool_calls }));
      }
      model.respond(new AIMessage('done'));
      await createAgent({ model, middleware: [loses(), ...lc.middleware] }).invoke(ask());
      const told = model.calls.map(({ messages }) => {
        const [system, ...others] = messages.map(({ content }) =>
          JSON.stringify(content).includes('Never delete.'),
        );
        return [system, others.includes(true)];
      });
      expect(told).toEqual([
        [false, false],
        [false, true],
        [false, true],
        [true, false],
      ]);
    },
  );
});
