import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import {
  END,
  MessagesValue,
  START,
  StateGraph,
  StateSchema,
  type BaseCheckpointSaver,
} from '@langchain/langgraph';
import { langchain } from '@patchbay/langchain';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent } from 'langchain';

import { shop } from './shop.ts';

/** A graph is made anew in each process: what it remembers is in its checkpointer. */
export interface Process extends AsyncDisposable {
  /** Runs a thread, or resumes it. */
  invoke(input: unknown): Promise<{
    readonly messages: readonly { readonly text: string }[];
    readonly __interrupt__?: readonly { readonly value?: unknown }[];
  }>;
}

/** Two agents, one after the other; each sees what its scope lets it see. */
export function startProcess(
  models: { readonly buyer: BaseChatModel; readonly payer: BaseChatModel },
  checkpointer: BaseCheckpointSaver,
  paid: number[],
): Process {
  const registry = new ExtensionRegistry({
    approval: ({ tool, args }) =>
      tool.annotations?.readOnlyHint === true ? 'allow' : { ask: `Pay ${String(args['amount'])}?` },
  });
  registry.register(shop(paid));
  const agent = (name: 'buyer' | 'payer', include: string) =>
    createAgent({
      model: models[name],
      ...langchain(
        registry.view({ session: 'one', agent: name }, { tools: { include: [include] } }),
      ),
    });
  const graph = new StateGraph(new StateSchema({ messages: MessagesValue }))
    .addNode('buyer', agent('buyer', 'shop__price').graph as never)
    .addNode('payer', agent('payer', 'shop__pay').graph as never)
    .addEdge(START, 'buyer')
    .addEdge('buyer', 'payer')
    .addEdge('payer', END)
    .compile({ checkpointer }) as unknown as Process;
  return {
    invoke: (input) =>
      (graph.invoke as (input: unknown, config: object) => ReturnType<Process['invoke']>).call(
        graph,
        input,
        {
          configurable: { thread_id: 'thread' },
        },
      ),
    [Symbol.asyncDispose]: () => registry.close(),
  };
}
