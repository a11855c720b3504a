import {
  humanInTheLoopMiddleware,
  llmToolSelectorMiddleware,
  toolCallLimitMiddleware,
  toolRetryMiddleware,
  type AgentMiddleware,
} from 'langchain';

/**
 * LangChain's own middlewares. Their zod 3 types are refused by LangChain's own `createAgent` under
 * `exactOptionalPropertyTypes`, which this repository sets; their users need not.
 */
type Make = (options: object) => AgentMiddleware;

export const humanReview = humanInTheLoopMiddleware as unknown as Make;
export const toolSelector = llmToolSelectorMiddleware as unknown as Make;
export const toolCallLimit = toolCallLimitMiddleware as unknown as Make;
export const toolRetry = toolRetryMiddleware as unknown as Make;
