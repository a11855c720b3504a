import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { langchain } from '@patchbay/langchain';
import type { ServerConfig, StdioServerConfig } from '@patchbay/protocols';
import { createAgent, createMiddleware, fakeModel } from 'langchain';

import { plug, plugShared } from './plug.ts';
import { headersOf, type Calls, type Plugged, type Side } from './side.ts';

async function run(parts: object, calls: Calls, signal?: AbortSignal): Promise<readonly string[]> {
  const model = fakeModel();
  for (const [at, { name, args = {} }] of calls.entries())
    model.respondWithTools([{ name, args, id: `c${at}` }]);
  model.respond(new AIMessage('done'));
  const agent = createAgent({ model, ...parts } as never);
  await agent.invoke(
    { messages: [new HumanMessage('go')] },
    signal === undefined ? {} : { signal },
  );
  // What the model is given behind its own call, wherever the framework puts it.
  return model.calls.slice(1).map(({ messages }) => {
    const own = messages.findLastIndex((message) => AIMessage.isInstance(message));
    return messages
      .slice(own + 1)
      .map((message) => {
        const failed = ToolMessage.isInstance(message) && message.status === 'error';
        return `${failed ? 'error ' : ''}${JSON.stringify(message.content)}`;
      })
      .join('\n');
  });
}

function plugged(
  parts: () => object,
  tools: Plugged['tools'],
  close: () => Promise<void>,
): Plugged {
  return { tools, run: (calls, signal) => run(parts(), calls, signal), close };
}

/** What is offered by the middleware of a view: it is seen by one that stands behind it. */
async function offeredBy(parts: { readonly middleware: readonly object[] }): Promise<string[]> {
  const offered: string[] = [];
  const look = createMiddleware({
    name: 'look',
    wrapModelCall: (request, handler) => {
      offered.push(...request.tools.map((tool) => String(tool['name'])));
      return handler(request);
    },
  });
  await run({ ...parts, middleware: [...parts.middleware, look] }, []);
  return offered;
}

export const patchbayForLangchain: Side = {
  name: 'patchbay',
  open: async (servers) => {
    const { registry, close } = plug(servers);
    return plugged(
      () => langchain(registry.view()),
      () => offeredBy(langchain(registry.view())),
      close,
    );
  },
  openShared: async (url) => plugShared(url, (view, calls) => run(langchain(view), calls)),
};

/** One client of all servers, its tools given to the agent. (LangChain docs, "MCP") */
export const mcpAdapters: Side = {
  name: '@langchain/mcp-adapters',
  open: async (servers) => {
    const client = new MultiServerMCPClient({
      mcpServers: Object.fromEntries(
        Object.entries(servers).map(([id, server]) => [id, stdio(server)]),
      ),
    });
    const tools = await client.getTools();
    return plugged(
      () => ({ tools }),
      async () => tools.map(({ name }) => name),
      () => client.close(),
    );
  },
  // One client, asked for tools with the headers of each user, as it offers.
  openShared: async (url) => {
    const client = new MultiServerMCPClient({ mcpServers: { shop: { transport: 'http', url } } });
    return {
      callAs: async (user, name) =>
        run({ tools: await client.getTools([], { headers: headersOf(user) }) }, [{ name }]),
      close: () => client.close(),
    };
  },
};

function stdio(server: ServerConfig) {
  const { command, args = [], env = {} } = server as StdioServerConfig;
  return { command, args: [...args], env: { ...env }, stderr: 'ignore' as const };
}
