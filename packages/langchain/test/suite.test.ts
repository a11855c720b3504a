import {
  AIMessage,
  HumanMessage,
  ToolMessage,
  type BaseMessage,
  type MessageContent,
} from '@langchain/core/messages';
import { langchain } from '@patchbay/langchain';
import type { JsonSchema } from '@patchbay/protocols';
import { describeAdapter } from '@patchbay/testkit/vitest';
import { createAgent, createMiddleware, fakeModel } from 'langchain';

const textOf = (content: MessageContent): string =>
  typeof content === 'string'
    ? content
    : content.map((part) => ('text' in part ? String(part.text) : '')).join('\n');

const resultsIn = (messages: readonly BaseMessage[]) =>
  Object.fromEntries(
    messages
      .filter((message) => ToolMessage.isInstance(message))
      .map((message) => [
        message.tool_call_id,
        { text: textOf(message.content), isError: message.status === 'error' },
      ]),
  );

describeAdapter('langchain', {
  create: async () => ({
    agent: (view, script) => {
      /** Stands where the model is: it sees what the adapter made of the request. */
      const playing = createMiddleware({
        name: 'playing',
        wrapModelCall: async ({ tools, messages, systemMessage }) => {
          const calls = await script({
            tools: tools.map(({ name }) => String(name)),
            schemas: Object.fromEntries(
              tools.map(({ name, schema }) => [String(name), schema as JsonSchema]),
            ),
            instructions: textOf(systemMessage.content),
            userText: messages
              .filter((message) => HumanMessage.isInstance(message))
              .map(({ content }) => textOf(content))
              .join(''),
            results: resultsIn(messages),
          });
          return new AIMessage({ content: '', tool_calls: calls.map((call) => ({ ...call })) });
        },
      });
      const lc = langchain(view);
      const agent = createAgent({
        model: fakeModel(),
        tools: lc.tools,
        middleware: [...lc.middleware, playing],
      });
      return async ({ userText, signal }) => {
        await agent.invoke(
          { messages: [new HumanMessage(userText)] },
          signal === undefined ? {} : { signal },
        );
      };
    },
  }),
});
