import { Command, MemorySaver } from '@langchain/langgraph';
import { langchain } from '@patchbay/langchain';
import type { TurnContext } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { createDeepAgent } from 'deepagents';
import { AIMessage, fakeModel, type AgentMiddleware } from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask, capability, outcomes } from './script.ts';

/** Under this repository's compiler options the types of some middlewares do not fit; those of their users need not. */
const deepAgent = createDeepAgent as unknown as (options: {
  readonly model: ReturnType<typeof fakeModel>;
  readonly middleware: readonly AgentMiddleware[];
  readonly subagents?: readonly object[];
  readonly checkpointer?: MemorySaver;
}) => {
  invoke(
    input: object,
    config?: object,
  ): Promise<{ messages: AIMessage[]; __interrupt__?: readonly object[] }>;
};

const call = (id: string, name: string, args: Record<string, unknown> = {}) => ({ id, name, args });
const task = (id: string, description: string) =>
  call(id, 'task', { description, subagent_type: 'helper' });

describe('deepagents', () => {
  it('has the tools of a view beside its own, and its instructions', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(
      capability(
        'c',
        { a: ({ x }) => `a got ${String(x)}` },
        { instructions: async () => [{ source: 'c', kind: 'static', text: 'Use a.' }] },
      ),
    );
    const model = fakeModel()
      .respondWithTools([call('1', 'c__a', { x: 1 }), call('2', 'ls', { path: '/' })])
      .respond(new AIMessage('done'));
    const agent = deepAgent({ model, ...langchain(registry.view()) });
    const result = await agent.invoke(ask());
    expect(outcomes(result)).toEqual([
      'success:a got 1',
      expect.stringMatching(/^success:|^undefined:/u),
    ]);
    expect(JSON.stringify(model.calls[0]?.messages[0]?.content)).toContain('Use a.');
  });

  it('has them in sub-agents too that are given the middleware, each in a turn of its own, side by side', async () => {
    await using registry = new ExtensionRegistry();
    const turns: TurnContext[] = [];
    registry.register({
      id: 'watch',
      prepareTurn: async (turn) => (turns.push(turn), undefined),
    });
    registry.register(capability('c', { who: (_args, { scope }) => String(scope.turn) }));
    const { middleware } = langchain(registry.view({ session: 's' }));
    const model = fakeModel();
    const answered = new Set<string>();
    // The same model is the main agent's and the helpers'; what was asked tells them apart.
    for (let at = 0; at < 6; at++) {
      model.respond((messages) => {
        const asked = messages.findLast((message) => message.getType() === 'human')?.text ?? '';
        const done = messages.at(-1)?.getType() === 'tool';
        if (asked === 'go' && !done)
          return new AIMessage({
            content: '',
            tool_calls: [task('left', 'left'), task('right', 'right')],
          });
        if (asked === 'go' || done) return new AIMessage(`${asked} done`);
        answered.add(asked);
        return new AIMessage({ content: '', tool_calls: [call(asked, 'c__who')] });
      });
    }
    const helper = { name: 'helper', description: 'Helps.', systemPrompt: 'Help.', middleware };
    const agent = deepAgent({ model, middleware, subagents: [helper] });
    const result = await agent.invoke(ask());
    expect(answered).toEqual(new Set(['left', 'right']));
    expect(outcomes(result).map((text) => text.split(':').at(-1))).toEqual([
      'left done',
      'right done',
    ]);
    const idsOf = (said: string) =>
      new Set(turns.filter(({ userText }) => userText === said).map(({ turnId }) => turnId));
    for (const said of ['go', 'left', 'right']) expect(idsOf(said).size, said).toBe(1);
    expect(new Set(turns.map(({ turnId }) => turnId)).size).toBe(3);
  });

  it('asks a person about a call of a sub-agent, and makes it once', async () => {
    await using registry = new ExtensionRegistry({
      approval: ({ tool }) => (tool.id.name === 'pay' ? 'ask' : 'allow'),
    });
    const paid: unknown[] = [];
    registry.register(capability('c', { pay: ({ x }) => `paid ${String(paid.push(x))}` }));
    const { middleware } = langchain(registry.view({ session: 's' }));
    const model = fakeModel()
      .respondWithTools([task('1', 'pay it')])
      .respondWithTools([call('2', 'c__pay', { x: 5 })])
      .respond(new AIMessage('helper done'))
      .respond(new AIMessage('done'));
    const helper = { name: 'helper', description: 'Helps.', systemPrompt: 'Help.', middleware };
    const agent = deepAgent({
      model,
      middleware,
      subagents: [helper],
      checkpointer: new MemorySaver(),
    });
    const config = { configurable: { thread_id: 't' } };
    const waiting = await agent.invoke(ask(), config);
    expect(waiting.__interrupt__).toMatchObject([
      { value: { actionRequests: [{ name: 'c__pay', args: { x: 5 } }] } },
    ]);
    expect(paid).toEqual([]);
    const resume = new Command({ resume: { decisions: [{ type: 'approve' }] } });
    const result = await agent.invoke(resume, config);
    expect(outcomes(result)[0]).toMatch(/helper done$/u);
    expect(paid).toEqual([5]);
  });
});
