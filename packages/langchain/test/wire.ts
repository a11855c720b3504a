import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { ChatGoogle } from '@langchain/google';
import type { BaseMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
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

/** One model of each provider package, with the request that it makes. */
export const providers = {
  'openai chat': (fetch: typeof globalThis.fetch) =>
    new ChatOpenAI({ ...key, model: 'gpt-4o', configuration: { fetch } }),
  'openai responses': (fetch: typeof globalThis.fetch) =>
    new ChatOpenAI({ ...key, model: 'gpt-4o', useResponsesApi: true, configuration: { fetch } }),
  anthropic: (fetch: typeof globalThis.fetch) =>
    new ChatAnthropic({ ...key, model: 'claude-sonnet-4-5', clientOptions: { fetch } }),
} as const;

export type Provider = keyof typeof providers | 'google' | 'openai:gpt-4o';

function modelOf(provider: Provider, fetch: typeof globalThis.fetch): BaseChatModel | string {
  if (provider === 'openai:gpt-4o') return provider;
  if (provider === 'google') return new ChatGoogle({ ...key, model: 'gemini-2.5-flash' });
  return providers[provider](fetch);
}

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
    const model = modelOf(provider, fetch);
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
