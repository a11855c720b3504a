import * as shipped from 'langchain';
import type { AgentMiddleware } from 'langchain';

/**
 * LangChain's own middlewares. Their zod 3 types are refused by LangChain's own `createAgent` under
 * `exactOptionalPropertyTypes`, which this repository sets; their users need not.
 */
type Make = (options?: object) => AgentMiddleware;
type Name = Extract<keyof typeof shipped, `${string}Middleware`>;

/** Looked up when it is used: older versions have fewer. */
const made =
  (name: Name): Make =>
  (options = {}) =>
    (shipped[name] as unknown as Make)(options);

export const humanReview: Make = made('humanInTheLoopMiddleware');
export const toolSelector: Make = made('llmToolSelectorMiddleware');
export const toolCallLimit: Make = made('toolCallLimitMiddleware');
export const toolRetry: Make = made('toolRetryMiddleware');
export const toolError: Make = made('toolErrorMiddleware');
export const toolSearch: Make = made('providerToolSearchMiddleware');
export const modelRetry: Make = made('modelRetryMiddleware');
export const summarization: Make = made('summarizationMiddleware');
export const contextEditing: Make = made('contextEditingMiddleware');
export const todoList: Make = made('todoListMiddleware');
