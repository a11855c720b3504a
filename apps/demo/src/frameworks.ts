import { aiSdk } from '@patchbay/ai-sdk';
import { langchain } from '@patchbay/langchain';
import type { ExtensionView } from '@patchbay/protocols';
import { ToolLoopAgent } from 'ai';
import { createAgent } from 'langchain';

import type { Models } from './models.ts';
import type { RuleRequest } from './rule-model.ts';

/** How one framework did something: every request that the rule-based model got, and what was said in the end. */
export interface Run {
  readonly requests: readonly RuleRequest[];
  readonly answer: string;
}

export interface RunOptions {
  readonly view: ExtensionView;
  readonly models: Models;
  readonly prompt: string;
  readonly signal?: AbortSignal;
}

/** The same thing through each framework. */
export const FRAMEWORKS: Readonly<Record<string, (options: RunOptions) => Promise<Run>>> = {
  'Vercel AI SDK, ToolLoopAgent': async ({ view, models, prompt, signal }) => {
    const requests: RuleRequest[] = [];
    const agent = new ToolLoopAgent({ model: models.aiSdk(requests), ...aiSdk(view) });
    const { text } = await agent.generate({
      prompt,
      ...(signal === undefined ? {} : { abortSignal: signal }),
    });
    return { requests, answer: text };
  },
  'LangChain.js, createAgent': async ({ view, models, prompt, signal }) => {
    const requests: RuleRequest[] = [];
    const agent = createAgent({ model: models.langchain(requests), ...langchain(view) });
    const { messages } = await agent.invoke(
      { messages: [{ role: 'user', content: prompt }] },
      signal === undefined ? {} : { signal },
    );
    return { requests, answer: messages.at(-1)?.text ?? '' };
  },
};
