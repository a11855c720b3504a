import type { LanguageModel } from 'ai';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';

import { ruleLanguageModel } from './ai-sdk-model.ts';
import { RuleChatModel } from './langchain-model.ts';
import type { RuleRequest } from './rule-model.ts';

/** A model in the form of each framework. `seen` gets every request of the rule-based one. */
export interface Models {
  readonly name: string;
  readonly isOffline: boolean;
  aiSdk(seen: RuleRequest[]): LanguageModel;
  langchain(seen: RuleRequest[]): BaseChatModel;
}

export const offline: Models = {
  name: 'a set of rules: no network, no key',
  isOffline: true,
  aiSdk: (seen) => ruleLanguageModel(seen),
  langchain: (seen) => new RuleChatModel(seen),
};

const KEYS: Readonly<Record<string, string>> = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
  google: 'GOOGLE_API_KEY',
};

/** A real model, as `anthropic/…`, `openai/…` or `google/…`; or why it cannot be used. */
export async function realModels(
  name: string,
  env: NodeJS.ProcessEnv,
): Promise<Models | { readonly missing: string }> {
  const [provider = '', ...rest] = name.split('/');
  const model = rest.join('/');
  const key = KEYS[provider];
  if (key === undefined || model === '') {
    return {
      missing: `--model is ${Object.keys(KEYS)
        .map((known) => `${known}/<model>`)
        .join(', ')}, not ${name}.`,
    };
  }
  const apiKey = env[key];
  if (apiKey === undefined || apiKey === '')
    return { missing: `Set ${key} to run the demo on ${name}.` };
  const named = { name, isOffline: false };
  if (provider === 'anthropic') {
    const [{ createAnthropic }, { ChatAnthropic }] = await Promise.all([
      import('@ai-sdk/anthropic'),
      import('@langchain/anthropic'),
    ]);
    return {
      ...named,
      aiSdk: () => createAnthropic({ apiKey })(model),
      langchain: () => new ChatAnthropic({ model, apiKey }),
    };
  }
  if (provider === 'openai') {
    const [{ createOpenAI }, { ChatOpenAI }] = await Promise.all([
      import('@ai-sdk/openai'),
      import('@langchain/openai'),
    ]);
    return {
      ...named,
      aiSdk: () => createOpenAI({ apiKey })(model),
      langchain: () => new ChatOpenAI({ model, apiKey }),
    };
  }
  const [{ createGoogleGenerativeAI }, { ChatGoogle }] = await Promise.all([
    import('@ai-sdk/google'),
    import('@langchain/google'),
  ]);
  return {
    ...named,
    aiSdk: () => createGoogleGenerativeAI({ apiKey })(model),
    langchain: () => new ChatGoogle({ model, apiKey }),
  };
}
