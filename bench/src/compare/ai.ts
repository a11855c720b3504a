import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { aiSdk } from '@patchbay/ai-sdk';
import type { ServerConfig, StdioServerConfig } from '@patchbay/protocols';
import { generateText, isStepCount, type ToolSet } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';

import { plug, plugShared } from './plug.ts';
import { headersOf, type Calls, type Plugged, type Side } from './side.ts';

const NONE = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };

type Settings = { readonly tools: ToolSet };

async function run(
  settings: Settings,
  calls: Calls,
  abortSignal: AbortSignal | undefined,
  offered: string[] = [],
): Promise<readonly string[]> {
  const given: string[] = [];
  let at = 0;
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt, tools = [] }) => {
      if (at === 0) offered.push(...tools.map(({ name }) => name));
      const last = prompt.at(-1);
      if (last?.role === 'tool')
        for (const part of last.content)
          if (part.type === 'tool-result') given.push(JSON.stringify(part.output));
      const call = calls[at++];
      return {
        content:
          call === undefined
            ? [{ type: 'text', text: 'done' }]
            : [
                {
                  type: 'tool-call',
                  toolCallId: `c${at}`,
                  toolName: call.name,
                  input: JSON.stringify(call.args ?? {}),
                },
              ],
        finishReason: { unified: call === undefined ? 'stop' : 'tool-calls', raw: undefined },
        usage: { inputTokens: NONE, outputTokens: { total: 1, text: 1, reasoning: undefined } },
        warnings: [],
      };
    },
  });
  await generateText({
    ...settings,
    model,
    prompt: 'go',
    stopWhen: isStepCount(calls.length + 1),
    ...(abortSignal === undefined ? {} : { abortSignal }),
  });
  return given;
}

function plugged(settings: () => Settings, close: () => Promise<void>): Plugged {
  return {
    tools: async () => {
      const offered: string[] = [];
      await run(settings(), [], undefined, offered);
      return offered;
    },
    run: (calls, signal) => run(settings(), calls, signal),
    close,
  };
}

export const patchbayForAi: Side = {
  name: 'patchbay',
  open: async (servers) => {
    const { registry, close } = plug(servers);
    return plugged(() => aiSdk(registry.view()), close);
  },
  openShared: async (url) => plugShared(url, (view, calls) => run(aiSdk(view), calls, undefined)),
};

/** A client for each server; their tools spread into one set. (AI SDK docs, "MCP Tools") */
export const aiSdkMcp: Side = {
  name: '@ai-sdk/mcp',
  open: async (servers) => {
    const clients = await Promise.all(Object.values(servers).map(client));
    const sets = await Promise.all(clients.map((one) => one.tools()));
    const tools = Object.assign({}, ...sets) as ToolSet;
    return plugged(
      () => ({ tools }),
      async () => void (await Promise.all(clients.map((one) => one.close()))),
    );
  },
  // A client is for one user.
  openShared: async (url) => {
    const clients = new Map<string, ReturnType<typeof createMCPClient>>();
    return {
      callAs: async (user, name) => {
        const headers = headersOf(user);
        const known =
          clients.get(user) ?? createMCPClient({ transport: { type: 'http', url, headers } });
        clients.set(user, known);
        return run({ tools: (await (await known).tools()) as ToolSet }, [{ name }], undefined);
      },
      close: async () => {
        for (const one of clients.values()) await (await one).close();
      },
    };
  },
};

function client(server: ServerConfig) {
  const { command, args = [], env = {} } = server as StdioServerConfig;
  const transport = new Experimental_StdioMCPTransport({
    command,
    args: [...args],
    env: { ...env },
    stderr: 'ignore',
  });
  return createMCPClient({ transport });
}
