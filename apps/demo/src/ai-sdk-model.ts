import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';

import { reply, type RuleRequest } from './rule-model.ts';

/** The rule-based model as the Vercel AI SDK takes one. `seen` gets every request, for the checks. */
export function ruleLanguageModel(seen: RuleRequest[]): LanguageModelV4 {
  let calls = 0;
  return {
    specificationVersion: 'v4',
    provider: 'patchbay-demo',
    modelId: 'rules',
    supportedUrls: {},
    doGenerate: async (options): Promise<LanguageModelV4GenerateResult> => {
      const request = toRuleRequest(options);
      seen.push(request);
      const said = reply(request);
      const content: LanguageModelV4Content =
        'text' in said
          ? { type: 'text', text: said.text }
          : {
              type: 'tool-call',
              toolCallId: `call-${++calls}`,
              toolName: said.call.tool,
              input: JSON.stringify(said.call.args),
            };
      const count = {
        total: undefined,
        noCache: undefined,
        cacheRead: undefined,
        cacheWrite: undefined,
      };
      return {
        content: [content],
        finishReason: { unified: 'text' in said ? 'stop' : 'tool-calls', raw: undefined },
        usage: {
          inputTokens: count,
          outputTokens: { total: undefined, text: undefined, reasoning: undefined },
        },
        warnings: [],
      };
    },
    doStream: () => Promise.reject(new Error('The model of this demo does not stream.')),
  };
}

function toRuleRequest({ prompt, tools = [] }: LanguageModelV4CallOptions): RuleRequest {
  const calls = new Map<
    string,
    { readonly tool: string; readonly args: Record<string, unknown> }
  >();
  const results: RuleRequest['results'][number][] = [];
  const texts = { system: [] as string[], user: [] as string[] };
  for (const message of prompt) {
    if (message.role === 'system') texts.system.push(message.content);
    else {
      for (const part of message.content) {
        if (part.type === 'text' && message.role === 'user') texts.user.push(part.text);
        if (part.type === 'tool-call') {
          calls.set(part.toolCallId, {
            tool: part.toolName,
            args: part.input as Record<string, unknown>,
          });
        }
        if (part.type === 'tool-result') {
          const call = calls.get(part.toolCallId) ?? { tool: part.toolName, args: {} };
          results.push({ ...call, text: textOf(part.output) });
        }
      }
    }
  }
  return {
    system: texts.system.join('\n\n'),
    user: texts.user.join('\n'),
    tools: tools.map(({ name }) => name),
    results,
  };
}

function textOf(output: LanguageModelV4ToolResultPart['output']): string {
  if (output.type === 'text' || output.type === 'error-text') return output.value;
  if (output.type !== 'content') return JSON.stringify(output);
  return output.value
    .map((part) => (part.type === 'text' ? part.text : `[${part.type}]`))
    .join('\n');
}
