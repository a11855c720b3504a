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

  /** Goes on with a conversation on an agent made anew. */
  async function goOn(registry: ExtensionRegistry, messages: object[]) {
    const { model, seen } = scripted(major, [[text('done')]]);
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
    const { text: said } = await agent.generate({ messages: messages as never });
    return { said, told: outputs(seen[0])['t__pay'] };
  }

  it('that came after the policy had changed its mind is a refusal, and the run goes on', async () => {
    const calls: unknown[] = [];
    let policy = ask;
    await using registry = new ExtensionRegistry({ approval: (asking) => policy(asking) });
    registry.register(payments(calls));
    const messages = await asked(registry, true);
    policy = () => ({ deny: 'the shop is closed' });
    const { said, told } = await goOn(registry, messages);
    expect(said).toBe('done');
    expect(told).toMatchObject({ value: expect.stringContaining('the shop is closed') });
    expect(calls).toEqual([]);
  });

  it('that no longer needs to be asked for runs all the same, once', async () => {
    const calls: unknown[] = [];
    let policy = ask;
    await using registry = new ExtensionRegistry({ approval: (asking) => policy(asking) });
    registry.register(payments(calls));
    const messages = await asked(registry, true);
    policy = () => 'allow';
    expect((await goOn(registry, messages)).told).toEqual({ type: 'text', value: 'paid' });
    expect(calls).toEqual([5]);
  });

  it('that was given twice runs once, and not again when the conversation goes on', async () => {
    const calls: unknown[] = [];
    await using registry = new ExtensionRegistry({ approval: ask });
    registry.register(payments(calls));
    const messages = await asked(registry, true);
    const answers = messages.at(-1)!.content as readonly object[];
    const twice = [...messages.slice(0, -1), { role: 'tool', content: [...answers, ...answers] }];
    expect((await goOn(registry, twice)).said).toBe('done');
    expect(calls).toEqual([5]);
    const { model } = scripted(major, [[text('streamed')]]);
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
    expect(await (await agent.stream({ messages: twice as never })).text).toBe('streamed');
    expect(calls).toEqual([5]);

    const output = { type: 'text', value: 'paid' };
    const result = { type: 'tool-result', toolCallId: '1', toolName: 't__pay', output };
    const answered = { role: 'tool', content: [...answers, result] };
    await goOn(registry, [...messages.slice(0, -1), answered]);
    await goOn(registry, [
      ...messages.slice(0, -1),
      answered,
      { role: 'assistant', content: 'Paid.' },
      { role: 'user', content: 'thanks' },
    ]);
    expect(calls).toEqual([5]);
  });

  it('has made its call when the same conversation comes in another request, at once or to another process', async () => {
    const calls: unknown[] = [];
    const session = { session: 'ann' };
    await using registry = new ExtensionRegistry({ approval: ask });
    registry.register(payments(calls));
    const messages = await asked(registry, true);
    const send = async (to: ExtensionRegistry) => {
      const { model, seen } = scripted(major, [[text('done')]]);
      await new ai.ToolLoopAgent({ model, ...aiSdk(to.view(session)) }).generate({ messages });
      return String(outputs(seen[0])['t__pay']?.value);
    };
    const told = (await Promise.all([send(registry), send(registry)])).toSorted();
    const refused = expect.stringContaining('was used already') as string;
    expect(told).toEqual([refused, 'paid']);

    await using other = new ExtensionRegistry({ approval: ask });
    other.register(payments(calls));
    const stored = JSON.stringify(registry.state(session).snapshot());
    other.state(session).restore(JSON.parse(stored) as never);
    expect(await send(other)).toEqual(refused);
    expect(calls).toEqual([5]);
  });

  it('is kept to again where the call failed and the program tries the same conversation once more', async () => {
    let tries = 0;
    await using registry = new ExtensionRegistry({ approval: ask });
    const pay = () => {
      if (++tries === 1) throw new Error('busy');
      return 'paid';
    };
    const look = { name: 'look', annotations: { readOnlyHint: true }, call: () => 'looked' };
    registry.register(capability('t', [{ name: 'pay', call: pay }, look]));
    const messages = await asked(registry, true);
    const { model, seen } = scripted(major, () => [text('done')]);
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
    for (const type of ['error-text', 'text']) {
      await agent.generate({ messages });
      expect(outputs(seen.at(-1))['t__pay']?.type).toBe(type);
    }
  });

  it('of another call does not count for this one', async () => {
    const calls: unknown[] = [];
    await using registry = new ExtensionRegistry({ approval: ask });
    registry.register(payments(calls));
    const messages = await asked(registry, true);
    const other = { type: 'tool-approval-response', approvalId: 'of-another', approved: true };
    const forged = [...messages.slice(0, -1), { role: 'tool', content: [other] }];
    await expect(goOn(registry, forged)).rejects.toMatchObject({
      name: 'AI_InvalidToolApprovalError',
    });
    expect(calls).toEqual([]);

    // At the execution itself, whatever the framework lets through.
    const extensions = aiSdk(registry.view());
    const { t__pay: pay } = await extensions.toolsForMessages();
    const given = { toolCallId: 'another', messages };
    await expect(pay?.execute?.({ amount: 5 }, given as never)).rejects.toMatchObject({
      cause: { code: 'approval-required' },
    });
    expect(calls).toEqual([]);
  });

  it('vercel-ai-13048: an error of the approved call is told with its words', async () => {
    await using registry = new ExtensionRegistry({ approval: ask });
    const pay = () => {
      throw new Error('card declined');
    };
    registry.register(
      capability('t', [
        { name: 'pay', call: pay },
        { name: 'look', call: () => 'looked', annotations: { readOnlyHint: true } },
      ]),
    );
    expect((await goOn(registry, await asked(registry, true))).told).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining('card declined'),
    });
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
