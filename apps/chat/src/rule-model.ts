import { simulateReadableStream, type LanguageModel } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';

type Call = Parameters<MockLanguageModelV4['doStream']>[0];

const NONE = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };

/** What a model of rules does: `add 2 3` uses a tool, a word of a skill's description its skill, all else is answered. */
function decide({ prompt, tools = [] }: Call): {
  readonly tool?: string;
  readonly input: object;
  readonly text: string;
} {
  const last = prompt.at(-1);
  const text = JSON.stringify(last?.content ?? '');
  if (last?.role === 'tool') return { input: {}, text: `It says: ${saidIn(last.content)}` };
  const [, a, b] = /add (\d+) (\d+)/.exec(text) ?? [];
  const has = (name: string) => tools.some((tool) => tool.name === name);
  if (a !== undefined && has('tools__get-sum'))
    return { tool: 'tools__get-sum', input: { a: Number(a), b: Number(b) }, text: '' };
  const system = prompt
    .flatMap(({ role, content }) => (role === 'system' ? [content] : []))
    .join('\n');
  const skill = [...system.matchAll(/name="([a-z-]+)"|<name>([a-z-]+)<\/name>/g)]
    .map(([, one, other]) => one ?? other ?? '')
    .find((name) => text.toLowerCase().includes(name.slice(0, 6)));
  if (skill !== undefined && has('activate_skill'))
    return { tool: 'activate_skill', input: { name: skill }, text: '' };
  return { input: {}, text: `I can use ${tools.map(({ name }) => name).join(', ')}.` };
}

function saidIn(content: unknown): string {
  const parts = content as readonly { readonly output?: { readonly value?: unknown } }[];
  const value = parts[0]?.output?.value;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A model without network and key, so that the service can be tried at once. Give a real one in its place. */
export function ruleModel(): LanguageModel {
  return new MockLanguageModelV4({
    doStream: async (call: Call) => {
      const { tool, input, text } = decide(call);
      return {
        stream: simulateReadableStream({
          chunks: [
            { type: 'stream-start', warnings: [] },
            ...(tool === undefined
              ? [
                  { type: 'text-start' as const, id: '1' },
                  { type: 'text-delta' as const, id: '1', delta: text },
                  { type: 'text-end' as const, id: '1' },
                ]
              : [
                  {
                    type: 'tool-call' as const,
                    toolCallId: `call-${call.prompt.length}`,
                    toolName: tool,
                    input: JSON.stringify(input),
                  },
                ]),
            {
              type: 'finish',
              finishReason: { unified: tool === undefined ? 'stop' : 'tool-calls', raw: undefined },
              usage: {
                inputTokens: NONE,
                outputTokens: { total: 1, text: 1, reasoning: undefined },
              },
            },
          ],
        }),
      };
    },
  });
}
