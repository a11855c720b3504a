import { PatchbayError, textResult, type McpResource } from '@patchbay/protocols';

import { mcpSuite, type McpSubject } from '../src/index.ts';
import { HANGS, prove } from './prove.ts';

const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });
const TOOLS = [tool('works'), tool('fails'), tool('hangs')];
const URI = 'mcp://shop/memo';

const callTool: McpResource['callTool'] = async (name, _args, context) => {
  if (name === 'works') return textResult('ok');
  if (name === 'fails') return textResult('It failed.', { isError: true });
  if (name !== 'hangs') throw new PatchbayError('not-found', `There is no tool ${name}.`);
  return new Promise((_, reject) => {
    const { signal } = context ?? {};
    const abort = () =>
      reject(new PatchbayError('aborted', 'The call was aborted.', { cause: signal?.reason }));
    signal?.addEventListener('abort', abort, { once: true });
  });
};

const shop = (more: Partial<McpResource> = {}): McpSubject => ({
  capability: {
    id: 'shop',
    listTools: async () => TOOLS,
    callTool,
    listResources: async () => [{ uri: URI, name: 'memo' }],
    resourceExists: async (uri) => uri === URI,
    readResource: async (uri) => {
      if (uri !== URI) throw new PatchbayError('not-found', `There is no ${uri}.`);
      return textResult('memo').content;
    },
    ...more,
  },
  works: { name: 'works', args: {} },
  fails: { name: 'fails', args: {} },
  hangs: { name: 'hangs', args: {} },
});
const broken = (more: Partial<McpResource>) => () => shop(more);

prove(mcpSuite, () => shop(), {
  'lists its tools, each once, with its own name and a schema of an object': {
    subject: broken({ listTools: async () => [...TOOLS, tool('works')] }),
    says: /names of its tools/,
  },
  'keeps the definition of an unchanged tool from one listing to the next': {
    subject: broken({ listTools: async () => [tool('works')] }),
    says: /same object/,
  },
  'calls a tool, with a context and without': {
    subject: broken({
      callTool: (name, args, context) =>
        callTool(name, args, { ...context!, callId: context!.callId }),
    }),
    says: /undefined/,
  },
  'gives what a tool calls an error as a result, not as a rejection': {
    subject: broken({
      callTool: async () => {
        throw new PatchbayError('source-failed', 'It failed.');
      },
    }),
    says: /It failed/,
  },
  'refuses a tool that it does not have': {
    subject: broken({ callTool: async () => textResult('ok') }),
    says: /It answered/,
  },
  'ends a call that is aborted, with `aborted` and the reason, and goes on': {
    subject: broken({
      callTool: async (name, args, context) => {
        try {
          return await callTool(name, args, context);
        } catch {
          throw context?.signal?.reason;
        }
      },
    }),
    says: /expected a PatchbayError/,
  },
  'lists its resources, each once, by URIs that it answers for': {
    subject: broken({ listResources: async () => [{ uri: 'memo://one', name: 'one' }] }),
    says: /does not answer for/,
  },
  'reads each resource that it lists, and says that it exists': {
    subject: broken({ resourceExists: async () => false }),
    says: /exists/,
  },
  'knows no resource that it does not have': {
    subject: broken({ readResource: async () => textResult('anything').content }),
    says: /expected a rejection/,
  },
  'ends when nobody waits any more': {
    subject: broken({
      listTools: async ({ signal }) => (signal.aborted ? new Promise(() => undefined) : TOOLS),
    }),
    says: HANGS,
  },
});
