import { once } from 'node:events';

import { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import { MemorySaver } from '@langchain/langgraph';
import { langchain } from '@patchbay/langchain';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent, HumanMessage } from 'langchain';
import { describe, expect, it } from 'vitest';

import { ask, capability, kinds, script, slow } from './script.ts';

/** What a tracer is told of tools. */
class Trace extends BaseCallbackHandler {
  readonly name = 'trace';
  readonly #told: string[];

  constructor(told: string[]) {
    super();
    this.#told = told;
  }

  override handleToolStart(...args: unknown[]): void {
    this.#told.push(`start ${String(args[6])}`);
  }

  override handleToolEnd(): void {
    this.#told.push('end');
  }

  override handleToolError(error: unknown): void {
    this.#told.push(String(error));
  }
}

describe('an abort', () => {
  it.each(['invoke', 'agent'] as const)(
    'by the signal of %s reaches the tool and ends the run with its reason',
    async (where) => {
      await using registry = new ExtensionRegistry();
      const { events, capability: made } = slow();
      registry.register(made);
      const stop = new AbortController();
      events.once('started', () => stop.abort(new Error('user stopped')));
      const heard = once(events, 'aborted');
      const agent = createAgent({
        model: script([{ name: 'c__slow' }]),
        ...langchain(registry.view()),
        ...(where === 'agent' ? { signal: stop.signal } : {}),
      });
      const traced: string[] = [];
      const run = agent.invoke(ask(), {
        callbacks: [new Trace(traced)],
        ...(where === 'invoke' ? { signal: stop.signal } : {}),
      });
      await expect(run).rejects.toThrow('user stopped');
      expect(await heard).toEqual([stop.signal.reason]);
      expect(traced).toEqual(['start c__slow', 'Error: user stopped']);
    },
  );

  it('keeps its reason, so that a time limit is told from a wish', async () => {
    await using registry = new ExtensionRegistry();
    const { events, capability: made } = slow();
    registry.register(made);
    const stop = new AbortController();
    const reason = new DOMException('too slow', 'TimeoutError');
    events.once('started', () => stop.abort(reason));
    const heard = once(events, 'aborted');
    const agent = createAgent({
      model: script([{ name: 'c__slow' }]),
      ...langchain(registry.view()),
    });
    await expect(agent.invoke(ask(), { signal: stop.signal })).rejects.toBe(reason);
    expect(await heard).toEqual([reason]);
  });

  it('leaves a thread whose next request is well-formed (langchainjs-11437)', async () => {
    await using registry = new ExtensionRegistry();
    const { events, capability: made } = slow();
    registry.register(made);
    const stop = new AbortController();
    events.once('started', () => stop.abort(new Error('stop')));
    const model = script([{ name: 'c__slow' }]);
    const agent = createAgent({
      model,
      ...langchain(registry.view()),
      checkpointer: new MemorySaver(),
    });
    const config = { configurable: { thread_id: 't' } };
    await expect(agent.invoke(ask(), { ...config, signal: stop.signal })).rejects.toThrow('stop');
    await agent.invoke({ messages: [new HumanMessage('again')] }, config);
    const sent = model.calls.at(-1)?.messages ?? [];
    expect(kinds(sent)).toBe('human,ai,tool,human');
    expect(sent[2]?.text).toMatch(/^Error: no result was recorded/);
    const { values } = await agent.graph.getState(config);
    expect(kinds(values.messages)).toBe('human,ai,human,ai');
  });
});

describe('a running call', () => {
  it('reports progress in the custom stream, and is there as a tool for streams and callbacks', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(
      capability('c', {
        p: (_args, { onProgress }) => {
          onProgress?.({ progress: 1, total: 2, message: 'half' });
          return 'ok';
        },
      }),
    );
    const agent = createAgent({ model: script([{ name: 'c__p' }]), ...langchain(registry.view()) });
    const custom: unknown[] = [];
    const tools: string[] = [];
    const traced: string[] = [];
    const stream = await agent.stream(ask(), {
      streamMode: ['custom', 'tools'],
      callbacks: [new Trace(traced)],
    });
    for await (const [mode, chunk] of stream) {
      if (mode === 'custom') custom.push(chunk);
      else tools.push((chunk as { event: string }).event);
    }
    expect(custom).toEqual([
      {
        type: 'patchbay.progress',
        tool: 'c__p',
        callId: 'c__p-0',
        progress: 1,
        total: 2,
        message: 'half',
      },
    ]);
    expect(tools).toEqual(['on_tool_start', 'on_tool_end']);
    expect(traced).toEqual(['start c__p', 'end']);
  });
});
