import { describeAdapter } from '@patchbay/testkit/vitest';

import type { Chat } from '../src/chat-completions.ts';
import { toolLoop } from '../src/tool-loop.ts';

describeAdapter('a bare tool loop', {
  create: async () => ({
    agent: (view, script) => {
      /** Stands where the model is. */
      const chat: Chat = async ({ messages, tools }) => {
        const text = (role: string) =>
          messages.flatMap((one) => (one.role === role ? [one.content ?? ''] : [])).join('\n');
        const calls = await script({
          tools: tools.map((tool) => tool.function.name),
          schemas: Object.fromEntries(
            tools.map((tool) => [tool.function.name, tool.function.parameters]),
          ),
          instructions: text('system'),
          userText: text('user'),
          results: Object.fromEntries(
            messages.flatMap((one) =>
              one.role === 'tool'
                ? [
                    [
                      one.tool_call_id,
                      { text: one.content, isError: one.content.startsWith('Error:') },
                    ],
                  ]
                : [],
            ),
          ),
        });
        return {
          role: 'assistant',
          content: null,
          tool_calls: calls.map(({ id, name, args }) => ({
            id,
            type: 'function',
            function: { name, arguments: JSON.stringify(args) },
          })),
        };
      };
      const run = toolLoop(view, chat);
      return async ({ userText, signal }) => {
        await run(userText, signal);
      };
    },
  }),
});
