/** One half of a run: asks a person and ends, or goes on in another process with what the person said. */
import { Command } from '@langchain/langgraph';
import { langchain } from '@patchbay/langchain';
import { ExtensionRegistry } from '@patchbay/registry';
import { AIMessage, createAgent, fakeModel } from 'langchain';

import { FileSaver } from './file-saver.ts';
import { ask, capability, outcomes } from './script.ts';

const [half, file] = process.argv.slice(2) as ['ask' | 'resume', string];
const turns: string[] = [];
const registry = new ExtensionRegistry({
  approval: ({ tool }) => (tool.id.name === 'pay' ? 'ask' : 'allow'),
});
registry.register(
  capability(
    'c',
    { pay: ({ x }) => `paid ${String(x)} in ${half}`, secret: () => 'never' },
    {
      prepareTurn: async ({ turnId, userText }) => {
        turns.push(`${turnId} ${userText}`);
        return { hide: ['c__secret'] };
      },
    },
  ),
);
// Ids of their own: the mock model counts anew in each process, and LangGraph replaces messages of one id.
const call = half === 'ask' ? { name: 'c__pay', args: { x: 5 } } : { name: 'c__secret', args: {} };
const model = fakeModel()
  .respond(new AIMessage({ id: half, content: '', tool_calls: [{ id: half, ...call }] }))
  .respond(new AIMessage({ id: 'last', content: 'done' }));
const agent = createAgent({
  model,
  ...langchain(registry.view({ session: 's' })),
  checkpointer: new FileSaver(file),
});
const config = { configurable: { thread_id: 't' } };
const input =
  half === 'ask' ? ask() : new Command({ resume: { decisions: [{ type: 'approve' }] } });
const result = await agent.invoke(input, config);
await registry.close();
const said = result.messages.at(-1)?.text;
console.log(
  JSON.stringify({
    asked: result.__interrupt__?.length ?? 0,
    said,
    turns,
    outcomes: outcomes(result),
  }),
);
