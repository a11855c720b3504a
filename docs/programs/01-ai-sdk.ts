import { aiSdk } from '@patchbay/ai-sdk';
import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { ToolLoopAgent } from 'ai';

await using connections = new ConnectionPool();
await using registry = new ExtensionRegistry();
const server = { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] };
registry.register(new McpServerCapability({ id: 'files', server, connections }));
registry.register(localSkills({ id: 'my-skills', folder: '.agents/skills' }));
registry.register(new SkillManagerCapability());

const view = registry.view({ session: 'user-42', agent: 'coder' });
const agent = new ToolLoopAgent({
  model: 'anthropic/claude-sonnet-4.5',
  ...aiSdk(view, { instructions: 'You help with this repository.' }),
});

// Servers start now. Tools, skills and instructions stay current while the agent runs.
const { text } = await agent.generate({ prompt: 'Summarise the open issues.' });
console.log(text);
