import * as kit from '@patchbay/adapter-kit';
import type { ExtensionView, Tool, TurnView } from '@patchbay/protocols';

import type { Chat, ChatTool, Message, ToolCall } from './chat-completions.ts';

/** Runs a model over a view until it calls no more tools. Returns its last text. */
export function toolLoop(view: ExtensionView, chat: Chat) {
  const validator = kit.createToolValidator(kit.createProblemReport());
  const schemas = kit.createProviderSchemas();

  const describe = (tool: Tool): ChatTool => {
    validator.learn(tool);
    const { name, description = '', inputSchema } = tool.definition;
    const { schema: parameters } = schemas(inputSchema);
    return { type: 'function', function: { name, description, parameters } };
  };

  const answer = async (
    turn: TurnView,
    { id, function: called }: ToolCall,
    signal: AbortSignal | undefined,
  ): Promise<Message> => {
    const options = { callId: id, validator, ...(signal && { signal }) };
    const content = await Promise.resolve()
      .then(() => turn.callTool(called.name, JSON.parse(called.arguments), options))
      .then((result) => kit.planResult(result).text)
      .catch(kit.errorText); // a failed call is an answer: the run goes on
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
        const { tools, instructions } = await (await open()).prepare(); // as they are now
        const { static: fixed, dynamic } = kit.instructionText(instructions);
        const content = [fixed, dynamic].filter(Boolean).join('\n\n');
        const messages: Message[] = [{ role: 'system', content }, ...said];
        const reply = await chat({ messages, tools: tools.map(describe) }, signal);
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
