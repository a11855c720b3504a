import type { JsonSchema } from '@patchbay/protocols';
import { describeAdapter } from '@patchbay/testkit/vitest';

import { aiSdk } from '../src/index.ts';
import { call, MAJORS, scripted, systemTexts, text, toolNames, type Seen } from './majors.ts';

const of = ({ prompt }: Seen, role: string) =>
  prompt.filter((message) => message.role === role).map(({ content }) => content);

/** What the model was told about its calls. */
function resultsIn(seen: Seen) {
  const parts = of(seen, 'tool').flat() as readonly {
    readonly toolCallId: string;
    readonly output: { readonly type: string; readonly value: unknown };
  }[];
  return Object.fromEntries(
    parts.map(({ toolCallId, output: { type, value } }) => [
      toolCallId,
      {
        text: typeof value === 'string' ? value : JSON.stringify(value),
        isError: type.startsWith('error'),
      },
    ]),
  );
}

for (const major of MAJORS) {
  describeAdapter(`aiSdk with ai ${major.major}`, {
    create: async () => ({
      agent: (view, script) => {
        const { model } = scripted(major, async (seen) => {
          const [user] = of(seen, 'user') as [readonly { readonly text: string }[]];
          const calls = await script({
            tools: toolNames(seen),
            schemas: Object.fromEntries(
              seen.tools.map(({ name, inputSchema }) => [name, inputSchema as JsonSchema]),
            ),
            instructions: systemTexts(seen).join('\n'),
            userText: user.map((part) => part.text).join(''),
            results: resultsIn(seen),
          });
          return calls.length === 0
            ? [text('done')]
            : calls.map(({ id, name, args }) => call(id, name, args));
        });
        const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(view) });
        return async ({ userText, signal }) => {
          await agent.generate({
            prompt: userText,
            ...(signal === undefined ? {} : { abortSignal: signal }),
          });
        };
      },
    }),
  });
}
