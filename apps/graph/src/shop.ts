import { defineTool, type Capability } from '@patchbay/protocols';

/** What the agents work with: prices that anybody may look up, and payments that a person has to allow. */
export const shop = (paid: number[]): Capability => ({
  id: 'shop',
  tools: async () => [
    defineTool({
      capability: 'shop',
      name: 'price',
      description: 'The price of a thing.',
      annotations: { readOnlyHint: true },
      call: () => 42,
    }),
    defineTool({
      capability: 'shop',
      name: 'pay',
      description: 'Pays.',
      inputSchema: {
        type: 'object',
        properties: { amount: { type: 'number' } },
        required: ['amount'],
      },
      call: ({ amount }) => {
        paid.push(Number(amount));
        return `Paid ${String(amount)}.`;
      },
    }),
  ],
});
