import { defineTool, type Capability, type Tool, type ToolOptions } from '@patchbay/protocols';
import * as ai7 from 'ai';
import * as ai7Test from 'ai/test';
import * as ai6 from 'ai6';
import * as ai6Test from 'ai6/test';

/** The two majors under one type: what is used of them here has the same form in both. */
export const MAJORS = [
  { major: 6, ai: ai6 as unknown as typeof ai7, Model: ai6Test.MockLanguageModelV3 },
  { major: 7, ai: ai7, Model: ai7Test.MockLanguageModelV4 },
] as const;

export type Major = (typeof MAJORS)[number];

/** What the model was sent at one step. */
export interface Seen {
  readonly tools: readonly {
    readonly name: string;
    readonly inputSchema?: unknown;
    readonly strict?: boolean;
  }[];
  readonly prompt: readonly Message[];
  readonly toolChoice?: { readonly type: string } | undefined;
}

interface Message {
  readonly role: string;
  readonly content: unknown;
}

type Content = Readonly<Record<string, unknown>> & { readonly type: string };

/** Content of one answer of the model, from what it was sent. */
export type Reply = (seen: Seen, step: number) => readonly Content[] | Promise<readonly Content[]>;

export const text = (said: string): Content => ({ type: 'text', text: said });

export const call = (id: string, toolName: string, input: unknown = {}): Content => ({
  type: 'tool-call',
  toolCallId: id,
  toolName,
  input: JSON.stringify(input),
});

/** A model that answers as told, one entry per step; it records what it is sent. */
export function scripted(
  { Model }: Major,
  reply: Reply | readonly (readonly Content[])[],
): {
  readonly model: ai7.LanguageModel;
  readonly seen: Seen[];
} {
  const seen: Seen[] = [];
  const answer = async (given: unknown) => {
    const { tools = [], prompt, toolChoice } = given as Partial<Seen> & Pick<Seen, 'prompt'>;
    seen.push({ tools, prompt: structuredClone(prompt), toolChoice });
    const content =
      typeof reply === 'function'
        ? await reply(seen.at(-1)!, seen.length - 1)
        : reply[seen.length - 1];
    if (content === undefined) throw new Error('The script has no more answers.');
    const calls = content.some(({ type }) => type === 'tool-call');
    return {
      content,
      finishReason: { unified: calls ? 'tool-calls' : 'stop', raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 1, text: 1, reasoning: undefined },
      },
      warnings: [],
    };
  };
  const model = new Model({
    doGenerate: answer,
    doStream: async (given: unknown) => {
      const { content, finishReason, usage } = await answer(given);
      const parts = content.flatMap((part) =>
        part.type === 'text'
          ? [
              { type: 'text-start', id: '0' },
              { type: 'text-delta', id: '0', delta: part['text'] },
              { type: 'text-end', id: '0' },
            ]
          : [part],
      );
      const all = [
        { type: 'stream-start', warnings: [] },
        ...parts,
        { type: 'finish', finishReason, usage },
      ];
      return { stream: ReadableStream.from(all) };
    },
  } as never);
  return { model, seen };
}

export const toolNames = (seen: Seen | undefined): readonly string[] =>
  seen?.tools.map(({ name }) => name) ?? [];

export const systemTexts = (seen: Seen | undefined): readonly unknown[] =>
  seen?.prompt.filter(({ role }) => role === 'system').map(({ content }) => content) ?? [];

/** What the model was told about its calls, by tool name. */
export function outputs(
  seen: Seen | undefined,
): Readonly<Record<string, { readonly type: string; readonly value: unknown }>> {
  const parts = (seen?.prompt ?? [])
    .filter(({ role }) => role === 'tool')
    .flatMap(
      ({ content }) =>
        content as readonly {
          readonly toolName: string;
          readonly output: { type: string; value: unknown };
        }[],
    );
  return Object.fromEntries(parts.map(({ toolName, output }) => [toolName, output]));
}

/** A capability with these tools, and whatever else it is given. */
export function capability(
  id: string,
  tools: readonly Omit<ToolOptions, 'capability'>[],
  more: Omit<Capability, 'id'> = {},
): Capability {
  const made: readonly Tool[] = tools.map((tool) => defineTool({ ...tool, capability: id }));
  return { id, tools: async () => made, ...more };
}

/** A tool that says that it ran. */
export const says = (name: string): Omit<ToolOptions, 'capability'> => ({
  name,
  call: () => `${name} ran`,
});
