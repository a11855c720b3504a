import { isBaseMessage } from '@langchain/core/messages';
import {
  END,
  MemorySaver,
  MessagesValue,
  Send,
  START,
  StateGraph,
  StateSchema,
  Command,
} from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { toTools } from '@patchbay/langchain';
import { ExtensionRegistry } from '@patchbay/registry';
import { AIMessage, type HITLRequest, type ToolMessage } from 'langchain';
import { describe, expect, it } from 'vitest';

import { capability, outcomes } from './script.ts';

const calling = (...calls: { name: string; args?: Record<string, unknown> }[]) => ({
  messages: [
    new AIMessage({
      content: '',
      tool_calls: calls.map(({ name, args = {} }, at) => ({ name, args, id: `${at}` })),
    }),
  ],
});

const run = async (node: ToolNode, ...calls: Parameters<typeof calling>) =>
  outcomes((await node.invoke(calling(...calls))) as { messages: ToolMessage[] });

describe('toTools', () => {
  it('serves the ToolNode of a hand-written graph; what fails is an answer', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(
      capability('c', {
        a: ({ x }) => `a got ${String(x)}`,
        bad: () => {
          throw new Error('boom');
        },
      }),
    );
    const node = new ToolNode(await toTools(registry.view()));
    expect(
      await run(
        node,
        { name: 'c__a', args: { x: 1 } },
        { name: 'c__a', args: { x: 'one' } },
        { name: 'c__bad' },
      ),
    ).toEqual([
      'success:a got 1',
      expect.stringMatching(/^error:Error: Invalid arguments for c__a:\n- x: expected number/),
      expect.stringMatching(/^error:Error: .*boom/),
    ]);
  });

  it('calls through the view: a source that came back serves, one that went says so', async () => {
    await using registry = new ExtensionRegistry();
    const first = registry.register(capability('c', { a: () => 'first' }));
    const node = new ToolNode(await toTools(registry.view()));
    await first.close();
    expect(await run(node, { name: 'c__a' })).toEqual([
      expect.stringMatching(/^error:Error: .*not available/),
    ]);
    registry.register(capability('c', { a: () => 'second' }));
    expect(await run(node, { name: 'c__a' })).toEqual(['success:second']);
  });

  it('shows a schema that every provider takes', async () => {
    await using registry = new ExtensionRegistry();
    const inputSchema = {
      $defs: { S: { type: 'string' } },
      type: 'object',
      anyOf: [{ properties: { s: { $ref: '#/$defs/S' } } }, { properties: { k: { const: 1 } } }],
    };
    registry.register(capability('c', { a: { inputSchema, call: () => 'a' } }));
    const [made] = await toTools(registry.view());
    expect(made?.schema).toMatchObject({
      type: 'object',
      properties: { s: { type: 'string' }, k: { enum: [1] } },
    });
    expect(JSON.stringify(made?.schema)).not.toMatch(/\$ref|anyOf/);
  });

  it('answers plain arguments with text, and a tool call with a message that keeps the result', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(capability('c', { a: () => ({ rows: [1, 2] }) }));
    const [made] = await toTools(registry.view());
    expect(await made?.invoke({})).toBe('{"rows":[1,2]}');
    const message: unknown = await made?.invoke({
      type: 'tool_call',
      id: '7',
      name: 'c__a',
      args: {},
    });
    if (!isBaseMessage(message)) throw new Error('no message');
    expect(message).toMatchObject({
      tool_call_id: '7',
      artifact: { patchbay: { structuredContent: { rows: [1, 2] } } },
    });
  });

  it('makes each call once where each is a task of its own, and a decision is for the call whose interrupt it names', async () => {
    await using registry = new ExtensionRegistry({
      approval: ({ tool }) => (tool.id.name === 'pay' ? 'ask' : 'allow'),
    });
    const ran: string[] = [];
    const pay = ({ x }: { readonly x?: unknown }) => `${ran.push(`pay ${String(x)}`)}`;
    registry.register(capability('c', { pay, look: () => `${ran.push('look')}` }));
    const state = new StateSchema({ messages: MessagesValue });
    const node = new ToolNode(await toTools(registry.view()));
    const graph = new StateGraph(state)
      .addNode('tools', node)
      .addConditionalEdges(
        START,
        ({ messages }) =>
          ((messages.at(-1) as AIMessage).tool_calls ?? []).map(
            (call) => new Send('tools', { messages, lg_tool_call: call }),
          ),
        ['tools'],
      )
      .addEdge('tools', END)
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: 't' } };
    const one = { name: 'c__pay', args: { x: 1 } };
    const two = { name: 'c__pay', args: { x: 2 } };
    const waiting = await graph.invoke(calling(one, { name: 'c__look' }, two), config);
    const asked = (waiting as { __interrupt__?: { id: string; value: HITLRequest }[] })
      .__interrupt__;
    const resume = Object.fromEntries(
      (asked ?? []).map(({ id, value }) => {
        const type = value.actionRequests[0]?.args['x'] === 2 ? 'approve' : 'reject';
        return [id, { decisions: [{ type }] }];
      }),
    );
    const result = await graph.invoke(new Command({ resume }), config);
    expect(outcomes(result).map((text) => text.split(':')[0])).toEqual([
      'error',
      'success',
      'success',
    ]);
    expect(ran).toEqual(['look', 'pay 2']);
  });

  it('asks a person where the policy wants one', async () => {
    await using registry = new ExtensionRegistry({ approval: () => 'ask' });
    let paid = 0;
    registry.register(capability('c', { pay: () => `paid ${String(++paid)}` }));
    const node = new ToolNode(await toTools(registry.view()));
    const graph = new StateGraph(new StateSchema({ messages: MessagesValue }))
      .addNode('tools', node)
      .addEdge(START, 'tools')
      .addEdge('tools', END)
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: 't' } };
    await graph.invoke(calling({ name: 'c__pay' }), config);
    expect(paid).toBe(0);
    const resume = { decisions: [{ type: 'approve' }] };
    const result = await graph.invoke(new Command({ resume }), config);
    expect(outcomes(result)).toEqual(['success:paid 1']);
  });
});
