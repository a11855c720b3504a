import type { ApprovalPolicy } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

import { aiSdk } from '../src/index.ts';
import { call, capability, MAJORS, outputs, scripted, text } from './majors.ts';

const ask: ApprovalPolicy = ({ tool }) =>
  tool.annotations?.readOnlyHint === true ? 'allow' : 'ask';

describe.each(MAJORS)('approval in ai $major', (major) => {
  const { ai } = major;

  /** A run that ends in a question; gives the conversation with the answer. */
  async function asked(registry: ExtensionRegistry, approved: boolean) {
    const { model } = scripted(major, [[call('1', 't__pay', { amount: 5 }), call('2', 't__look')]]);
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
    const result = await agent.generate({ prompt: 'go' });
    const request = result.content.find(({ type }) => type === 'tool-approval-request');
    expect(request).toMatchObject({ toolCall: { toolName: 't__pay' } });
    const { approvalId } = request as { readonly approvalId: string };
    return [
      { role: 'user' as const, content: 'go' },
      ...result.response.messages,
      {
        role: 'tool' as const,
        content: [{ type: 'tool-approval-response' as const, approvalId, approved }],
      },
    ];
  }

  const payments = (paid: unknown[]) =>
    capability('t', [
      { name: 'pay', call: ({ amount }) => (paid.push(amount), 'paid') },
      { name: 'look', annotations: { readOnlyHint: true }, call: () => 'looked' },
    ]);

  it.each([
    [true, [5], 'text'],
    [false, [], 'execution-denied'],
  ])(
    'asked for by the policy: the answer %s is kept to, in a new process too',
    async (approved, paid, type) => {
      const calls: unknown[] = [];
      await using registry = new ExtensionRegistry({ approval: ask });
      registry.register(payments(calls));
      const messages = await asked(registry, approved);
      expect(calls).toEqual([]);
      const { model, seen } = scripted(major, [[text('done')]]);
      const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
      expect((await agent.generate({ messages })).text).toBe('done');
      expect(calls).toEqual(paid);
      expect(outputs(seen[0])['t__pay']?.type).toBe(type);
    },
  );

  it('that came for a tool that is gone meanwhile is answered: no longer available', async () => {
    await using registry = new ExtensionRegistry({ approval: ask });
    const registered = registry.register(payments([]));
    const messages = await asked(registry, true);
    await registered.close();
    for (const prepare of ['agent', 'text'] as const) {
      const { model, seen } = scripted(major, [[text('done')]]);
      const extensions = aiSdk(registry.view());
      if (prepare === 'agent')
        await new ai.ToolLoopAgent({ model, ...extensions }).generate({ messages });
      else {
        await extensions.toolsForMessages(messages);
        await ai.generateText({ model, messages, ...extensions });
      }
      expect(outputs(seen[0])['t__pay']).toMatchObject({
        type: 'error-text',
        value: expect.stringContaining('not available (any more)'),
      });
    }
  });

  it('cannot be passed by: a denial of the policy and a forged call stay refused', async () => {
    const calls: unknown[] = [];
    await using registry = new ExtensionRegistry({ approval: () => ({ deny: 'not today' }) });
    registry.register(payments(calls));
    const { model, seen } = scripted(major, [[call('1', 't__pay')], [text('done')]]);
    await new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) }).generate({ prompt: 'go' });
    expect(outputs(seen[1])['t__pay']).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining('refused by policy (not today)'),
    });
    expect(calls).toEqual([]);
  });
});
