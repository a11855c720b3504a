import { createHost } from '@patchbay/host';
import { langchain } from '@patchbay/langchain';
import { createAgent } from 'langchain';

await using host = await createHost();
await using session = await host.openSession('user-42');

const agent = createAgent({
  model: 'anthropic:claude-sonnet-4-5',
  systemPrompt: 'You help with this repository.',
  ...langchain(session.agent('coder').view()),
});

const { messages } = await agent.invoke({
  messages: [{ role: 'user', content: 'Summarise the open issues.' }],
});
console.log(messages.at(-1)?.text);
