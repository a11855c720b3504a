/** Sub-agents as people write them with each framework: an agent that is a tool of another one, and deepagents' `task`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { aiSdk } from '@patchbay/ai-sdk';
import { createHost, type Host } from '@patchbay/host';
import { langchain } from '@patchbay/langchain';
import { scriptedServer, type ScriptedServer } from '@patchbay/testkit';
import { tool, ToolLoopAgent, jsonSchema } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createDeepAgent } from 'deepagents';
import { AIMessage, fakeModel, HumanMessage, type AgentMiddleware } from 'langchain';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let root: string;
let server: ScriptedServer;
let host: Host;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'patchbay-sub-agents-'));
  server = await scriptedServer({
    transport: 'http',
    tools: [{ name: 'look' }, { name: 'drop' }, { name: 'wait', onCall: 'never' }],
  });
  const { url } = server.config as { readonly url: string };
  host = await createHost({
    cwd: root,
    home: false,
    env: {},
    watch: false,
    config: { mcp_servers: { crm: { url } } },
  });
});
afterEach(async () => {
  await host.close();
  await server.close();
  await rm(root, { recursive: true, force: true });
});

/** Until the server runs a call that it never answers. */
const waits = (times: number) =>
  expect.poll(() => server.executions('wait'), { interval: 2, timeout: 5_000 }).toBe(times);
const cancelled = (times: number) =>
  expect.poll(() => server.cancellations, { interval: 2, timeout: 5_000 }).toBe(times);

describe('an agent of the AI SDK that is a tool of another one', () => {
  interface Seen {
    readonly prompt: readonly { readonly role: string; readonly content: unknown }[];
    readonly tools?: readonly { readonly name: string }[];
  }
  const none = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
  /** A model that says the calls that the last message asks for (`name {…}; name {…}`), then what it was told. */
  const model = (seen: Seen[]) =>
    new MockLanguageModelV4({
      doGenerate: async (given) => {
        seen.push(given);
        const last = given.prompt.at(-1)!;
        const asked = last.role === 'user' ? (last.content[0] as { text: string }).text : '';
        const content =
          last.role === 'user'
            ? asked.split('; ').map((line, i) => {
                const [, toolName = '', input = '{}'] = /^(\w+) ?(.*)$/u.exec(line) ?? [];
                return {
                  type: 'tool-call' as const,
                  toolCallId: `${toolName}-${i}`,
                  toolName,
                  input: input === '' ? '{}' : input,
                };
              })
            : [{ type: 'text' as const, text: JSON.stringify(last.content) }];
        return {
          content,
          finishReason: {
            unified: last.role === 'user' ? ('tool-calls' as const) : ('stop' as const),
            raw: undefined,
          },
          usage: { inputTokens: none, outputTokens: { total: 1, text: 1, reasoning: undefined } },
          warnings: [],
        };
      },
    });

  async function start() {
    const session = await host.openSession('s');
    const parent = session.agent('main');
    const seen = { main: [] as Seen[], sub: [] as Seen[] };
    const research = tool({
      description: 'Has something looked up.',
      inputSchema: jsonSchema<{ task: string }>({ type: 'object' }),
      execute: async ({ task }, { abortSignal }) => {
        const signal = abortSignal === undefined ? {} : { signal: abortSignal };
        const sub = await parent.spawn('researcher', {
          tools: { exclude: ['*__drop'] },
          ...signal,
        });
        try {
          const agent = new ToolLoopAgent({ model: model(seen.sub), ...aiSdk(sub.view()) });
          const { text } = await agent.generate({
            prompt: task,
            ...(abortSignal === undefined ? {} : { abortSignal }),
          });
          return text;
        } finally {
          await sub.close();
        }
      },
    });
    const extensions = aiSdk(parent.view());
    const agent = new ToolLoopAgent({
      model: model(seen.main),
      // Under this repository's compiler options the type of `prepareStep` does not fit; that of its users need not.
      ...(extensions as object),
      tools: { ...extensions.tools, research },
    });
    return { agent, seen };
  }

  it('has its own narrowed view in each call, side by side, over the one connection', async () => {
    const { agent, seen } = await start();
    const task = (n: number) => `research {"task":"crm__look {\\"n\\":${n}}"}`;
    const { text } = await agent.generate({ prompt: `${task(1)}; ${task(2)}` });
    for (const n of [1, 2]) expect(text.replaceAll('\\', '')).toContain(`{"n":${n}}`);
    const names = (all: readonly Seen[]) => all[0]?.tools?.map(({ name }) => name).toSorted();
    expect(names(seen.main)).toEqual(['crm__drop', 'crm__look', 'crm__wait', 'research']);
    expect(names(seen.sub)).toEqual(['crm__look', 'crm__wait']);
    expect([server.executions('look'), server.connections]).toEqual([2, 1]);
    expect(host.inspect().sessions).toMatchObject([{ subAgents: [] }]);
  });

  it('is interrupted with the run of the other one, down to the server, which goes on after it', async () => {
    const { agent } = await start();
    const stop = new AbortController();
    const task = 'research {"task":"crm__wait"}';
    const running = agent.generate({ prompt: `${task}; ${task}`, abortSignal: stop.signal });
    const ended = running.then(
      () => 'an answer',
      (error: { readonly name?: string }) => error.name,
    );
    await waits(2);
    expect(host.inspect().sessions).toMatchObject([
      { subAgents: ['main/researcher#1', 'main/researcher#2'] },
    ]);
    stop.abort();
    expect(await ended).toBe('AbortError');
    await cancelled(2);
    await expect.poll(() => host.inspect().sessions).toMatchObject([{ subAgents: [] }]);
    const { text } = await agent.generate({ prompt: 'research {"task":"crm__look {\\"n\\":3}"}' });
    expect(text.replaceAll('\\', '')).toContain('{"n":3}');
    expect(server.connections).toBe(1);
  });
});

describe("deepagents' task sub-agents", () => {
  /** Under this repository's compiler options the types of some middlewares do not fit; those of their users need not. */
  const deepAgent = createDeepAgent as unknown as (options: {
    readonly model: ReturnType<typeof fakeModel>;
    readonly middleware: readonly AgentMiddleware[];
    readonly subagents?: readonly object[];
  }) => {
    invoke(input: object, options?: object): Promise<{ messages: AIMessage[] }>;
  };

  /** The main agent gives two tasks at once; each helper calls a tool, by the same model. */
  async function start(toolOfHelpers: string, signal?: AbortSignal) {
    const session = await host.openSession('s');
    const parent = session.agent('main');
    const helper = await parent.spawn('helper', {
      tools: { exclude: ['*__drop'] },
      ...(signal === undefined ? {} : { signal }),
    });
    const model = fakeModel();
    for (let at = 0; at < 6; at++) {
      model.respond((messages) => {
        const asked = messages.findLast((message) => message.getType() === 'human')?.text ?? '';
        const last = messages.at(-1)!;
        const done = last.getType() === 'tool';
        if (asked !== 'go') {
          if (done) return new AIMessage(`${asked}: ${last.text}`);
          const call = { id: asked, name: toolOfHelpers, args: { for: asked } };
          return new AIMessage({ content: '', tool_calls: [call] });
        }
        if (done) return new AIMessage('done');
        const task = (description: string) => ({
          id: description,
          name: 'task',
          args: { description, subagent_type: 'helper' },
        });
        return new AIMessage({ content: '', tool_calls: [task('left'), task('right')] });
      });
    }
    const agent = deepAgent({
      model,
      middleware: langchain(parent.view()).middleware,
      subagents: [
        {
          name: 'helper',
          description: 'Helps.',
          systemPrompt: 'Help.',
          middleware: langchain(helper.view()).middleware,
        },
      ],
    });
    return { agent, helper, parent };
  }
  const go = { messages: [new HumanMessage('go')] };
  const toolTexts = ({ messages }: { readonly messages: readonly AIMessage[] }) =>
    messages.filter((message) => message.getType() === 'tool').map(({ text }) => text);

  it('see what the sub-agent sees, side by side, and nothing of it after its end', async () => {
    const { agent, helper, parent } = await start('crm__look');
    expect(toolTexts(await agent.invoke(go))).toEqual([
      'left: {"for":"left"}',
      'right: {"for":"right"}',
    ]);
    expect([server.executions('look'), server.connections]).toEqual([2, 1]);
    await helper.close();
    const { callTool } = await parent.view().compile();
    await callTool('crm__look', {});
    expect(server.connections).toBe(1);
  });

  it('cannot call what was taken from them', async () => {
    const { agent } = await start('crm__drop');
    const texts = toolTexts(await agent.invoke(go));
    expect(texts).toEqual([
      expect.stringContaining('crm__drop'),
      expect.stringContaining('crm__drop'),
    ]);
    expect(server.executions('drop')).toBe(0);
  });

  it('are interrupted with the run, down to the server', async () => {
    const stop = new AbortController();
    const { agent, parent } = await start('crm__wait', stop.signal);
    const ended = agent.invoke(go, { signal: stop.signal }).then(
      () => 'an answer',
      () => 'interrupted',
    );
    await waits(2);
    stop.abort();
    expect(await ended).toBe('interrupted');
    await cancelled(2);
    await expect.poll(() => host.inspect().sessions).toMatchObject([{ subAgents: [] }]);
    const { callTool } = await parent.view().compile();
    await callTool('crm__look', {});
    expect(server.connections).toBe(1);
  });
});
