import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import type { BaseMessage } from '@langchain/core/messages';
import { commands, langchain, toTools, type LangchainParts } from '@patchbay/langchain';
import type { ExtensionView } from '@patchbay/protocols';
import {
  createAgent,
  createMiddleware,
  tool,
  type AgentMiddleware,
  type ReactAgent,
} from 'langchain';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';

declare const model: BaseChatModel;
declare const view: ExtensionView;

const own = tool(({ n }) => `${n}`, {
  name: 'own',
  description: 'own',
  schema: z.object({ n: z.number() }),
});
const withState = createMiddleware({
  name: 'withState',
  stateSchema: z.object({ extra: z.string().default('') }),
});

test('the parts are what createAgent takes, alone and beside others', () => {
  const lc = langchain(view);
  expectTypeOf(lc).toEqualTypeOf<LangchainParts>();
  expectTypeOf(lc.tools).toEqualTypeOf<[]>();
  expectTypeOf(lc.middleware).toEqualTypeOf<[AgentMiddleware, AgentMiddleware]>();
  expectTypeOf(createAgent({ model, ...lc })).toExtend<ReactAgent>();
  const said = commands(view, [{ role: 'user', content: '/review it' }]);
  expectTypeOf(said).resolves.toExtend<BaseMessage[]>();
  expectTypeOf(
    createAgent({
      model,
      tools: [own, ...lc.tools],
      middleware: [withState, ...lc.middleware],
    }),
  ).toExtend<ReactAgent>();
});

test('the inference of the user’s own parts is kept', async () => {
  const agent = createAgent({
    model,
    tools: [own],
    middleware: [withState, ...langchain(view).middleware],
    responseFormat: z.object({ answer: z.string() }),
    contextSchema: z.object({ user: z.string(), patchbay: z.custom<ExtensionView>().optional() }),
  });
  const result = await agent.invoke({ messages: [] }, { context: { user: 'u', patchbay: view } });
  expectTypeOf(result.structuredResponse.answer).toEqualTypeOf<string>();
  expectTypeOf(result.extra).toEqualTypeOf<string>();
  // @ts-expect-error the user's own context schema is still enforced
  await agent.invoke({ messages: [] }, { context: { nope: 1 } });
});

test('a view may come by context without a schema', async () => {
  const agent = createAgent({ model, ...langchain(view) });
  await agent.invoke({ messages: [] }, { context: { patchbay: view } });
});

test('toTools gives tools for any place that takes LangChain tools', async () => {
  createAgent({ model, tools: await toTools(view) });
});
