import { ConnectionPool } from '@patchbay/connection-pool';
import { langchain } from '@patchbay/langchain';
import { McpServerCapability } from '@patchbay/mcp';
import type { ServerRequestHandlers } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer } from '@patchbay/testkit';
import { createAgent } from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask as question, outcomes, script } from './script.ts';

/** A travel agency whose tool asks the user, the program's model, and where it may write, before it answers. */
const agency = (era: 'legacy' | 'modern') =>
  scriptedServer({
    transport: 'http',
    era,
    tools: [
      {
        name: 'book',
        onCall: async (_, { ask }) => {
          const form = (await ask('elicitation/create', {
            mode: 'form',
            message: 'How many seats?',
            requestedSchema: {
              type: 'object',
              properties: { seats: { type: 'integer', default: 2 } },
            },
          })) as { readonly content: { readonly seats: number } };
          const said = (await ask('sampling/createMessage', {
            messages: [{ role: 'user', content: { type: 'text', text: 'Which city?' } }],
            maxTokens: 20,
          })) as { readonly content: { readonly text: string } };
          const { roots } = (await ask('roots/list', {})) as {
            readonly roots: readonly { readonly uri: string }[];
          };
          return `${form.content.seats} seats to ${said.content.text}, saved in ${roots[0]?.uri}`;
        },
      },
    ],
  });

/** How a program answers: its user agrees to the defaults, its own model knows the city. */
const answers = (city: string): ServerRequestHandlers => ({
  elicitation: async () => ({ action: 'accept', content: {} }),
  sampling: async () => ({
    role: 'assistant',
    model: 'own',
    content: { type: 'text', text: city },
  }),
  roots: async () => [{ uri: 'file:///home/ann' }],
});

/** Elicitation, one of the four names of langchainjs-11605; the others are in complaints.int.test.ts. */
describe('a server that asks in the middle of a call', () => {
  it.each(['legacy', 'modern'] as const)('is answered, and the run goes on (%s)', async (era) => {
    await using server = await agency(era);
    await using connections = new ConnectionPool({ handlers: answers('Rome') });
    await using registry = new ExtensionRegistry();
    registry.register(
      new McpServerCapability({ id: 'travel', server: server.config, connections }),
    );
    const model = script([{ name: 'travel__book' }]);
    const agent = createAgent({ model, ...langchain(registry.view()) });
    const result = await agent.invoke(question('Book a trip'));
    expect(result.messages.at(-1)?.text).toBe('done');
    expect(outcomes(result)).toEqual(['success:2 seats to Rome, saved in file:///home/ann']);
    expect(server.executions('book')).toBe(1);
  });

  it('is answered by those whose run it is, also when two run at once', async () => {
    await using server = await agency('modern');
    await using connections = new ConnectionPool({ handlers: answers('nowhere') });
    await using registry = new ExtensionRegistry();
    registry.register(
      new McpServerCapability({ id: 'travel', server: server.config, connections }),
    );
    const book = async (city: string) => {
      const model = script([{ name: 'travel__book' }]);
      const parts = langchain(registry.view(), { handlers: answers(city) });
      return outcomes(await createAgent({ model, ...parts }).invoke(question('Book')));
    };
    expect(await Promise.all([book('Oslo'), book('Bonn')])).toEqual([
      ['success:2 seats to Oslo, saved in file:///home/ann'],
      ['success:2 seats to Bonn, saved in file:///home/ann'],
    ]);
    expect(connections.inspect()).toHaveLength(1);
  });
});
