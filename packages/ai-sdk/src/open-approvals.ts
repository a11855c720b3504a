import type { ToolResult } from '@patchbay/protocols';
import type { ModelMessage } from 'ai';

/** The fields of parts of messages that approvals and calls are told by, in both majors. */
interface Part {
  readonly type?: string;
  readonly approvalId?: string;
  readonly approved?: boolean;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly state?: string;
}

/** The answer in which a person has said yes to this very call. */
export function approvalOf(
  messages: readonly ModelMessage[],
  toolCallId: string,
): string | undefined {
  const parts = partsOf(messages);
  const asked = parts
    .filter((part) => part.type === 'tool-approval-request' && part.toolCallId === toolCallId)
    .map(({ approvalId }) => approvalId);
  return parts.find(
    (part) =>
      part.type === 'tool-approval-response' &&
      part.approved === true &&
      asked.includes(part.approvalId),
  )?.approvalId;
}

/**
 * Calls under way that a person has said yes to. Where the yes stands twice in a conversation, some versions of the AI SDK
 * make the call twice at once: it is one call.
 */
export class AnsweredCalls {
  readonly #running = new WeakMap<readonly ModelMessage[], Map<string, Promise<ToolResult>>>();

  once(
    messages: readonly ModelMessage[],
    callId: string,
    make: () => Promise<ToolResult>,
  ): Promise<ToolResult> {
    let running = this.#running.get(messages);
    if (running === undefined) this.#running.set(messages, (running = new Map()));
    const known = running.get(callId);
    if (known !== undefined) return known;
    const call = make().finally(() => running.delete(callId));
    running.set(callId, call);
    return call;
  }
}

/** The tools for which a conversation asks, or has asked, for an approval. */
export function toolsWithApproval(messages: readonly ModelMessage[]): readonly string[] {
  const parts = partsOf(messages);
  const calls = parts
    .filter(({ type }) => type === 'tool-approval-request')
    .map(({ toolCallId }) => toolCallId);
  return names(
    parts.filter((part) => part.type === 'tool-call' && calls.includes(part.toolCallId)),
  );
}

/** Every tool that is named in messages, of a model or of a user interface. */
export function toolsNamedIn(messages: readonly object[]): readonly string[] {
  return names(partsOf(messages));
}

function names(parts: readonly Part[]): readonly string[] {
  return [...new Set(parts.map(nameIn).filter((name) => name !== undefined))];
}

/** A user interface has the name of a static tool in the type of its part. */
function nameIn({ type, toolName, state }: Part): string | undefined {
  if (typeof toolName === 'string') return toolName;
  const isStatic = typeof type === 'string' && type.startsWith('tool-') && state !== undefined;
  return isStatic ? type.slice('tool-'.length) : undefined;
}

/** A loop: it runs at each step, over the whole conversation. */
function partsOf(messages: readonly object[]): readonly Part[] {
  const found: Part[] = [];
  for (const message of messages as readonly Readonly<Record<string, unknown>>[])
    for (const parts of [message['content'], message['parts']]) {
      if (!Array.isArray(parts)) continue;
      for (const part of parts as readonly unknown[])
        if (typeof part === 'object' && part !== null) found.push(part);
    }
  return found;
}
