import { MockLanguageModelV4 } from 'ai/test';

/**
 * Models for programs that name one, so that they run as they are printed, without a network or a key. Each calls a tool
 * that needs no arguments, if it has one, and then says what the tool said.
 */

/** Where the AI SDK looks for a model that is named: `globalThis.AI_SDK_DEFAULT_PROVIDER`. */
export const provider = {
  specificationVersion: 'v4',
  languageModel: () =>
    new MockLanguageModelV4({
      doGenerate: async ({ prompt, tools = [] }) => {
        const reply = decide(
          tools.flatMap((tool) =>
            tool.type === 'function' ? [{ name: tool.name, schema: tool.inputSchema }] : [],
          ),
          prompt.filter(({ role }) => role === 'tool').map(({ content }) => content),
        );
        return {
          content: [
            'call' in reply
              ? { type: 'tool-call', toolCallId: 'call-1', toolName: reply.call, input: '{}' }
              : { type: 'text', text: reply.text },
          ],
          finishReason: { unified: 'call' in reply ? 'tool-calls' : 'stop', raw: undefined },
          usage: {
            inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
            outputTokens: { total: 1, text: 1, reasoning: undefined },
          },
          warnings: [],
        };
      },
    }),
};

/** The Messages API of Anthropic, which `@langchain/anthropic` sends to by `globalThis.fetch`. */
export async function messagesApi(_url: unknown, init?: { readonly body?: unknown }) {
  const { messages, tools = [] } = JSON.parse(String(init?.body)) as {
    readonly messages: readonly { readonly content: unknown }[];
    readonly tools?: readonly { readonly name: string; readonly input_schema: object }[];
  };
  const reply = decide(
    tools.map((tool) => ({ name: tool.name, schema: tool.input_schema })),
    messages
      .flatMap(({ content }) => (Array.isArray(content) ? (content as { type?: unknown }[]) : []))
      .filter(({ type }) => type === 'tool_result'),
  );
  return Response.json({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content: [
      'call' in reply
        ? { type: 'tool_use', id: 'call_1', name: reply.call, input: {} }
        : { type: 'text', text: reply.text },
    ],
    stop_reason: 'call' in reply ? 'tool_use' : 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  });
}

interface Offered {
  readonly name: string;
  readonly schema: { readonly required?: readonly unknown[] | undefined };
}

function decide(
  tools: readonly Offered[],
  results: readonly unknown[],
): { readonly call: string } | { readonly text: string } {
  if (results.length > 0) return { text: `The tool said: ${JSON.stringify(results)}` };
  const simple = tools.find(({ schema }) => (schema.required ?? []).length === 0);
  return simple === undefined ? { text: 'There is nothing to call.' } : { call: simple.name };
}
