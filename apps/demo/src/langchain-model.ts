import { BaseChatModel, type BindToolsInput } from '@langchain/core/language_models/chat_models';
import { AIMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages';
import type { ChatResult } from '@langchain/core/outputs';

import { reply, type RuleRequest } from './rule-model.ts';

/** The rule-based model as LangChain takes one. `seen` gets every request, for the checks. */
export class RuleChatModel extends BaseChatModel {
  readonly #seen: RuleRequest[];
  readonly #tools: readonly string[];
  #calls = 0;

  constructor(seen: RuleRequest[], tools: readonly string[] = []) {
    super({});
    this.#seen = seen;
    this.#tools = tools;
  }

  override _llmType(): string {
    return 'rules';
  }

  override bindTools(tools: BindToolsInput[]): RuleChatModel {
    return new RuleChatModel(this.#seen, tools.map(nameOf));
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const request = toRuleRequest(messages, this.#tools);
    this.#seen.push(request);
    const said = reply(request);
    const message =
      'text' in said
        ? new AIMessage(said.text)
        : new AIMessage({
            content: '',
            tool_calls: [
              {
                id: `call-${request.results.length}-${++this.#calls}`,
                name: said.call.tool,
                args: said.call.args,
              },
            ],
          });
    return { generations: [{ text: message.text, message }] };
  }
}

function toRuleRequest(messages: readonly BaseMessage[], tools: readonly string[]): RuleRequest {
  const calls = new Map<
    string,
    { readonly tool: string; readonly args: Record<string, unknown> }
  >();
  const textsOf = (type: string) => messages.filter((m) => m.getType() === type).map((m) => m.text);
  for (const message of messages) {
    if (!AIMessage.isInstance(message)) continue;
    for (const { id = '', name, args } of message.tool_calls ?? [])
      calls.set(id, { tool: name, args });
  }
  return {
    system: textsOf('system').join('\n\n'),
    user: textsOf('human').join('\n'),
    tools,
    results: messages.flatMap((message) => {
      if (!ToolMessage.isInstance(message)) return [];
      const call = calls.get(message.tool_call_id) ?? { tool: message.name ?? '', args: {} };
      return [{ ...call, text: message.text }];
    }),
  };
}

function nameOf(tool: BindToolsInput): string {
  if ('name' in tool && typeof tool.name === 'string') return tool.name;
  const { function: { name } = { name: '' } } = tool as { function?: { name: string } };
  return name;
}
