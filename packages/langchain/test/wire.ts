import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { ChatGoogle } from '@langchain/google';
import type { BaseMessage } from '@langchain/core/messages';
import { ChatGoogleGenerativeAI } from '@langchain/google-genai';
import { ChatGroq } from '@langchain/groq';
import { ChatMistralAI } from '@langchain/mistralai';
import { ChatOllama } from '@langchain/ollama';
import { ChatOpenAI } from '@langchain/openai';
import { ChatOpenAI as ChatOpenAI16 } from '@langchain/openai-1.6';
import { ChatOpenRouter } from '@langchain/openrouter';
import { createAgent, type AgentMiddleware } from 'langchain';
import { vi } from 'vitest';

/** A request body as a provider package sends it. */
export interface WireBody {
  readonly [key: string]: unknown;
}

/** Catches the request and answers with a refusal: nothing leaves the machine. */
function recorder() {
  const bodies: WireBody[] = [];
  const fetch = async (input: unknown, init?: { readonly body?: unknown }): Promise<Response> => {
    const body = typeof init?.body === 'string' ? init.body : await (input as Request).text();
    bodies.push(JSON.parse(body) as WireBody);
    return Response.json({ error: { message: 'stop' } }, { status: 400 });
  };
  return { bodies, fetch: fetch as typeof globalThis.fetch };
}

const key = { apiKey: 'x', maxRetries: 0 };

/** One model of each provider package; some of them only take the `fetch` of the process. */
export const providers = {
  'openai chat': (fetch: typeof globalThis.fetch) =>
    new ChatOpenAI({ ...key, model: 'gpt-4o', configuration: { fetch } }),
  'openai responses': (fetch: typeof globalThis.fetch) =>
    new ChatOpenAI({ ...key, model: 'gpt-4o', useResponsesApi: true, configuration: { fetch } }),
  // Puts media of tool messages into tool outputs, which 1.5 does not.
  'openai 1.6 chat': (fetch: typeof globalThis.fetch) =>
    new ChatOpenAI16({ ...key, model: 'gpt-4o', configuration: { fetch } }),
  'openai 1.6 responses': (fetch: typeof globalThis.fetch) =>
    new ChatOpenAI16({ ...key, model: 'gpt-4o', useResponsesApi: true, configuration: { fetch } }),
  // Named by a string: one of Responses, behind a wrapper.
  'openai:gpt-4o': () => 'openai:gpt-4o',
  anthropic: (fetch: typeof globalThis.fetch) =>
    new ChatAnthropic({ ...key, model: 'claude-sonnet-4-5', clientOptions: { fetch } }),
  google: () => new ChatGoogle({ ...key, model: 'gemini-2.5-flash' }),
  'google-genai': () => new ChatGoogleGenerativeAI({ ...key, model: 'gemini-2.5-flash' }),
  mistral: () => new ChatMistralAI({ ...key, model: 'mistral-large-latest' }),
  groq: (fetch: typeof globalThis.fetch) => new ChatGroq({ ...key, model: 'llama', fetch }),
  ollama: (fetch: typeof globalThis.fetch) =>
    new ChatOllama({ maxRetries: 0, model: 'llama3.2', fetch }),
  openrouter: () => new ChatOpenRouter({ ...key, model: 'openai/gpt-4o' }),
} as const satisfies Record<string, (fetch: typeof globalThis.fetch) => BaseChatModel | string>;

export type Provider = keyof typeof providers;

/** What an agent with this middleware would send for these messages. */
export async function sent(
  provider: Provider,
  middleware: AgentMiddleware[],
  messages: BaseMessage[],
): Promise<WireBody> {
  const { bodies, fetch } = recorder();
  vi.stubGlobal('fetch', fetch);
  vi.stubEnv('OPENAI_API_KEY', 'x');
  try {
    const model = providers[provider](fetch);
    const end = await createAgent({ model, middleware })
      .invoke({ messages })
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    const body = bodies[0];
    if (body === undefined) throw new Error(`${provider} sent nothing`, { cause: end });
    return body;
  } finally {
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
  }
}
