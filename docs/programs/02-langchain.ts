import { ConnectionPool } from '@patchbay/connection-pool';
import { langchain } from '@patchbay/langchain';
import { McpServerCapability } from '@patchbay/mcp';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { createAgent } from 'langchain';

await using connections = new ConnectionPool();
await using registry = new ExtensionRegistry();
const server = { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] };
registry.register(new McpServerCapability({ id: 'files', server, connections }));
registry.register(localSkills({ id: 'my-skills', folder: '.agents/skills' }));
registry.register(new SkillManagerCapability());

const agent = createAgent({
  model: 'anthropic:claude-sonnet-4-5',
  systemPrompt: 'You help with this repository.',
  ...langchain(registry.view({ session: 'user-42', agent: 'coder' })),
});

const { messages } = await agent.invoke({
  messages: [{ role: 'user', content: 'Summarise the open issues.' }],
});
console.log(messages.at(-1)?.text);
