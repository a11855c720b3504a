/** What a model object may tell about itself. Every part is optional: a wrapped model may have none. */
interface TellsItsType {
  readonly _llmType?: () => string;
  /** Of a model that was named by a string: the real one behind it. */
  readonly _getModelInstance?: () => Promise<TellsItsType>;
}

/**
 * What LangChain's class for the model calls itself: `openai`, `anthropic`, `google`, `googlegenerativeai`, `mistral_ai`,
 * `groq`, `ollama`, `openrouter`; `unknown` where it does not say. A model named by a string is looked through: its
 * wrapper only says `chat_model`.
 */
export async function providerKind(model: object): Promise<string> {
  const outer: TellsItsType = model;
  const told =
    typeof outer._getModelInstance === 'function' ? await outer._getModelInstance() : outer;
  return typeof told._llmType === 'function' ? told._llmType() : 'unknown';
}
