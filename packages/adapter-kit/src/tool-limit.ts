import { RESERVED_TOOL_NAMES, type Problem, type Tool } from '@patchbay/protocols';

/** Providers refuse requests with more tools (OpenAI), and models choose worse among many. */
export const TOOL_LIMIT = 128;

/** Whether a model can do without it until it looks for it: how to use skills it has to know. */
export const isDeferrable = ({ definition }: Tool): boolean =>
  !RESERVED_TOOL_NAMES.includes(definition.name);

/** What to tell of a view that offers more tools than `limit`, all at once. `remedy` says how this framework finds some of many. */
export function tooManyTools(limit: number, remedy: string): Problem {
  return {
    source: 'tools',
    code: 'tool-limit',
    severity: 'warning',
    message: `The model is shown more than ${limit} tools at once: it chooses worse among them, and some providers refuse the request. ${remedy}, or narrow the view (\`tools: { include }\`).`,
  };
}
