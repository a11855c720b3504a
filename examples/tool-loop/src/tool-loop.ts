import {
  createProviderSchemas,
  createToolValidator,
  createProblemReport,
  errorText,
  instructionText,
  planResult,
} from '@patchbay/adapter-kit';
import type { ExtensionView, JsonSchema, Tool, TurnStep, TurnView } from '@patchbay/protocols';

/** A message, a call and a request as the Chat Completions API has them. */
export type Message =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | {
      readonly role: 'assistant';
      readonly content: string | null;
      readonly tool_calls?: ToolCall[];
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };
export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}
export interface ChatRequest {
  readonly messages: readonly Message[];
  readonly tools: readonly {
    readonly type: 'function';
    readonly function: { name: string; description?: string; parameters: JsonSchema };
  }[];
}
export type Chat = (
  request: ChatRequest,
  signal?: AbortSignal,
) => Promise<Extract<Message, { role: 'assistant' }>>;

/** Runs a model over a view until it calls no more tools. Returns its last text. */
export function toolLoop(view: ExtensionView, chat: Chat) {
  const report = createProblemReport();
  const validator = createToolValidator(report);
  const schemas = createProviderSchemas();

  const describe = (tool: Tool): ChatRequest['tools'][number] => {
    validator.learn(tool);
    const { name, description, inputSchema } = tool.definition;
    const { schema: parameters } = schemas(inputSchema);
    const text = description === undefined ? {} : { description };
    return { type: 'function', function: { name, ...text, parameters } };
  };

  const answer = async (
    turn: TurnView,
    { id, function: { name, arguments: json } }: ToolCall,
    signal?: AbortSignal,
  ): Promise<Message> => {
    const options = { callId: id, validator, ...(signal === undefined ? {} : { signal }) };
    const content = await Promise.resolve()
      .then(() => turn.callTool(name, JSON.parse(json), options))
      .then((result) => planResult(result).text)
      .catch(errorText); // a failed call is an answer: the run goes on
    return { role: 'tool', tool_call_id: id, content };
  };

  return async (userText: string, signal?: AbortSignal): Promise<string> => {
    const turnId = crypto.randomUUID(); // parallel runs do not mix
    /** A turn that ended meanwhile (an idle limit) is opened again, and hides what it hid. */
    const open = async () => {
      const turn = view.beginTurn({ turnId, userText });
      if (turn.current() === undefined) await turn.prepare();
      return turn;
    };
    const said: Message[] = [{ role: 'user', content: userText }];
    try {
      for (;;) {
        signal?.throwIfAborted();
        const step = await (await open()).prepare(); // tools and instructions as they are now
        const messages = [system(step), ...said];
        const reply = await chat({ messages, tools: step.tools.map(describe) }, signal);
        said.push(reply);
        if (!reply.tool_calls?.length) return reply.content ?? '';
        const turn = await open();
        said.push(...(await Promise.all(reply.tool_calls.map((one) => answer(turn, one, signal)))));
      }
    } finally {
      await view.beginTurn({ turnId }).close();
    }
  };
}

function system({ instructions }: TurnStep): Message {
  const { static: fixed, dynamic } = instructionText(instructions);
  return { role: 'system', content: [fixed, dynamic].filter(Boolean).join('\n\n') };
}
