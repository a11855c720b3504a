import { EventEmitter } from 'node:events';

import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages';
import {
  defineTool,
  type Capability,
  type JsonSchema,
  type ToolOptions,
  type ToolReturn,
  type CallContext,
} from '@patchbay/protocols';
import { fakeModel } from 'langchain';

/** A call that the scripted model makes; its id is its name and its place in the step. */
export interface ScriptedCall {
  readonly name: string;
  readonly args?: Record<string, unknown>;
  readonly id?: string;
}

/** A model that makes these calls, one array per step, and then says "done". */
export function script(
  ...steps: readonly (readonly ScriptedCall[])[]
): ReturnType<typeof fakeModel> {
  const model = fakeModel();
  for (const step of steps) {
    model.respondWithTools(
      step.map((call, at) => ({ args: {}, id: `${call.name}-${at}`, ...call })),
    );
  }
  return model.respond(new AIMessage('done'));
}

export const ask = (text = 'go'): { messages: BaseMessage[] } => ({
  messages: [new HumanMessage(text)],
});

type Call = (
  args: Readonly<Record<string, unknown>>,
  context: CallContext,
) => ToolReturn | Promise<ToolReturn>;

/** A capability with one tool per function. */
export function capability(
  id: string,
  tools: Readonly<Record<string, Call | Omit<ToolOptions, 'capability' | 'name'>>>,
  more: Partial<Capability> = {},
): Capability {
  const made = Object.entries(tools).map(([name, tool]) =>
    defineTool({
      capability: id,
      name,
      description: name,
      inputSchema: ANY_X,
      ...(typeof tool === 'function' ? { call: tool } : tool),
    }),
  );
  return { id, tools: async () => made, ...more };
}

const ANY_X: JsonSchema = { type: 'object', properties: { x: { type: 'number' } } };

export const toolMessages = ({
  messages,
}: {
  readonly messages: readonly BaseMessage[];
}): ToolMessage[] => messages.filter((message) => ToolMessage.isInstance(message));

/** `status:content` of every tool message; content that is not one plain string shows as JSON. */
export const outcomes = (result: { readonly messages: readonly BaseMessage[] }): string[] =>
  toolMessages(result).map(
    ({ status, content }) =>
      `${status}:${typeof content === 'string' ? content : JSON.stringify(content)}`,
  );

export const kinds = (messages: readonly BaseMessage[]): string =>
  messages.map((message) => message.getType()).join();

/** A tool that only ends by its signal. It tells when it has started, and what it heard. */
export function slow() {
  const events = new EventEmitter<{ started: []; aborted: [unknown] }>();
  const made = capability('c', {
    slow: (_args, { signal, onProgress }) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => {
          events.emit('aborted', signal.reason);
          reject(new Error('cut'));
        });
        onProgress?.({ progress: 1 });
        events.emit('started');
      }),
  });
  return { events, capability: made };
}
