import { langchain } from '@patchbay/langchain';
import { ExtensionRegistry } from '@patchbay/registry';
import { AIMessage, createAgent, createMiddleware, fakeModel, tool } from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask, capability, outcomes, script } from './script.ts';
import { toolCallLimit, toolRetry, toolSelector } from './shipped-middleware.ts';

/** Where LangChain's own middlewares belong beside this one, as the README says. */
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
});
