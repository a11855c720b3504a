import { spawn, type ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { AIMessage } from '@langchain/core/messages';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { aiSdk } from '@patchbay/ai-sdk';
import { ConnectionPool } from '@patchbay/connection-pool';
import { langchain } from '@patchbay/langchain';
import { McpServerCapability } from '@patchbay/mcp';
import type { ServerConfig } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { generateText, isStepCount, type ToolSet } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createAgent, fakeModel } from 'langchain';

import type { Arm, Case, Cost } from '../case.ts';

/** What an agent does in one run. The figures are per call. */
interface Work {
  readonly steps: number;
  /** Calls in each step. */
  readonly atOnce: number;
}

const ONE_BY_ONE: Work = { steps: 20, atOnce: 1 };
const AT_ONCE: Work = { steps: 1, atOnce: 64 };
const SERVER = join(
  dirname(
    createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json'),
  ),
  'dist/index.js',
);
const STDIO = { command: process.execPath, args: [SERVER, 'stdio'] };
const textOf = (i: number) => `message ${i}`;

/** The server has no option for where it listens: it is kept on this machine. */
const LOOPBACK = new URL('../../../apps/demo/servers/loopback.mjs', import.meta.url).href;

type Transport = 'stdio' | 'http';

/** The same server for every arm of a case over HTTP. */
export class HttpServer {
  #child: ChildProcess | undefined;
  #users = 0;
  url = '';

  async start(): Promise<void> {
    if (this.#users++ > 0) return;
    const port = await freePort();
    const child = spawn(process.execPath, ['--import', LOOPBACK, SERVER, 'streamableHttp'], {
      env: { PATH: process.env['PATH'], PORT: String(port) },
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    this.#child = child;
    await new Promise<void>((resolve) => {
      child.stderr?.on('data', (chunk: Buffer) => chunk.includes('listening') && resolve());
    });
    this.url = `http://127.0.0.1:${port}/mcp`;
  }

  async stop(): Promise<void> {
    if (--this.#users > 0 || this.#child === undefined) return;
    const child = this.#child;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGKILL');
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** What an arm is made of: how it connects, and how it runs its agent over the tool `name`. */
interface Subject {
  readonly name: string;
  open(server: ServerConfig & { readonly url?: string }): Promise<{
    run(work: Work): Promise<readonly string[]>;
    close(): Promise<void>;
  }>;
}

function arm(subject: Subject, transport: Transport, http: HttpServer, work: Work): Arm {
  const calls = work.steps * work.atOnce;
  let opened: Awaited<ReturnType<Subject['open']>> | undefined;
  let answers: readonly string[] = [];
  return {
    name: subject.name,
    setup: async () => {
      if (transport === 'http') await http.start();
      opened = await subject.open(transport === 'stdio' ? STDIO : { url: http.url });
    },
    run: async (): Promise<Cost> => {
      const cpu = process.cpuUsage();
      const start = performance.now();
      answers = await opened!.run(work);
      const value = (performance.now() - start) / calls;
      const { user, system } = process.cpuUsage(cpu);
      return { value, cpu: (user + system) / 1000 / calls };
    },
    answer: async () => answers,
    teardown: async () => {
      await opened?.close();
      if (transport === 'http') await http.stop();
    },
  };
}

/** The calls of each step, numbered through. */
const callsOf = ({ steps, atOnce }: Work): readonly (readonly number[])[] =>
  Array.from({ length: steps }, (_, step) =>
    Array.from({ length: atOnce }, (_one, i) => step * atOnce + i + 1),
  );

/** An agent of the AI SDK that calls tools, one step after the other. */
async function throughAi(
  name: string,
  work: Work,
  settings: { readonly tools: ToolSet },
): Promise<readonly string[]> {
  const left = [...callsOf(work)];
  const none = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
  const model = new MockLanguageModelV4({
    doGenerate: async () => {
      const step = left.shift();
      return {
        content: step?.map((call) => ({
          type: 'tool-call',
          toolCallId: `c${call}`,
          toolName: name,
          input: JSON.stringify({ message: textOf(call) }),
        })) ?? [{ type: 'text', text: 'done' }],
        finishReason: { unified: step ? 'tool-calls' : 'stop', raw: undefined },
        usage: { inputTokens: none, outputTokens: { total: 1, text: 1, reasoning: undefined } },
        warnings: [],
      };
    },
  });
  const { steps } = await generateText({
    ...settings,
    model,
    prompt: 'go',
    stopWhen: isStepCount(work.steps + 1),
  });
  return steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => contentText(output)));
}

/** An agent of LangChain that does the same. */
async function throughLangchain(
  name: string,
  work: Work,
  parts: object,
): Promise<readonly string[]> {
  const model = fakeModel();
  for (const step of callsOf(work)) {
    model.respondWithTools(
      step.map((call) => ({ name, args: { message: textOf(call) }, id: `c${call}` })),
    );
  }
  model.respond(new AIMessage('done'));
  const agent = createAgent({ model, ...(parts as { tools: [] }) });
  const { messages } = await agent.invoke(
    { messages: [{ role: 'user', content: 'go' }] },
    { recursionLimit: 4 * work.steps + 20 },
  );
  return messages.filter((message) => message.getType() === 'tool').map((message) => message.text);
}

function contentText(output: unknown): string {
  const { content } = output as { readonly content: readonly { readonly text?: string }[] };
  return content.map(({ text }) => text ?? '').join('');
}

function patchbay(
  use: (view: ReturnType<ExtensionRegistry['view']>, work: Work) => Promise<readonly string[]>,
): Subject {
  return {
    name: 'patchbay',
    open: async (server) => {
      const connections = new ConnectionPool();
      const registry = new ExtensionRegistry();
      registry.register(new McpServerCapability({ id: 'all', server, connections }));
      const view = registry.view();
      await view.compile();
      return {
        run: (work) => use(view, work),
        close: async () => {
          await registry.close();
          await connections.close();
        },
      };
    },
  };
}

const aiSubjects: readonly Subject[] = [
  patchbay((view, work) => throughAi('all__echo', work, aiSdk(view))),
  {
    name: '@ai-sdk/mcp',
    open: async ({ url }) => {
      const client = await createMCPClient({
        transport:
          url === undefined ? new Experimental_StdioMCPTransport(STDIO) : { type: 'http', url },
      });
      const tools = (await client.tools()) as ToolSet;
      return {
        run: (work) => throughAi('echo', work, { tools }),
        close: () => client.close(),
      };
    },
  },
];

const langchainSubjects: readonly Subject[] = [
  patchbay((view, work) => throughLangchain('all__echo', work, langchain(view))),
  {
    name: '@langchain/mcp-adapters',
    open: async ({ url }) => {
      const client = new MultiServerMCPClient({
        mcpServers: {
          all:
            url === undefined
              ? { transport: 'stdio', ...STDIO, stderr: 'ignore' }
              : { transport: 'http', url },
        },
      });
      const tools = await client.getTools();
      return {
        run: (work) => throughLangchain('echo', work, { tools }),
        close: () => client.close(),
      };
    },
  },
];

function compared(
  framework: 'ai' | 'LangChain',
  transport: Transport,
  work: Work,
  atMost: Readonly<Partial<Record<'cpu' | 'value', number>>>,
): Case {
  const http = new HttpServer();
  const subjects = framework === 'ai' ? aiSubjects : langchainSubjects;
  const against = subjects[1]!.name;
  return {
    name: `${work.atOnce === 1 ? 'one call' : `${work.atOnce} calls at once`}, ${transport}, through ${framework}`,
    unit: 'ms',
    arms: subjects.map((subject) => arm(subject, transport, http, work)),
    goals: (['cpu', 'value'] as const).flatMap((of) =>
      atMost[of] === undefined ? [] : [{ arm: 'patchbay', against, of, atMost: atMost[of] }],
    ),
  };
}

export const singleCalls: readonly Case[] = [
  compared('ai', 'stdio', ONE_BY_ONE, { cpu: 0.65, value: 0.95 }),
  compared('ai', 'http', ONE_BY_ONE, { cpu: 0.35, value: 0.4 }),
  compared('LangChain', 'stdio', ONE_BY_ONE, { cpu: 0.55, value: 0.7 }),
  compared('LangChain', 'http', ONE_BY_ONE, { cpu: 0.28, value: 0.35 }),
];

/** Milliseconds per call: the throughput, turned around. */
export const callsAtOnce: readonly Case[] = [
  compared('ai', 'stdio', AT_ONCE, { value: 1 / 1.6 }),
  compared('ai', 'http', AT_ONCE, { value: 1 / 3 }),
  compared('LangChain', 'stdio', AT_ONCE, { value: 1 / 2 }),
  compared('LangChain', 'http', AT_ONCE, { value: 1 / 4 }),
];
