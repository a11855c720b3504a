import type { JsonSchema } from '@patchbay/protocols';

/** What a tool loop needs of the Chat Completions API: messages, calls, a request. */
export type Message =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }
  | Reply;

interface Reply {
  readonly role: 'assistant';
  readonly content: string | null;
  readonly tool_calls?: readonly ToolCall[];
}

export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ChatTool {
  readonly type: 'function';
  readonly function: { name: string; description?: string; parameters: JsonSchema };
}

interface ChatRequest {
  readonly messages: readonly Message[];
  readonly tools: readonly ChatTool[];
}

/** Sends a request to a model. */
export type Chat = (request: ChatRequest, signal?: AbortSignal) => Promise<Reply>;
