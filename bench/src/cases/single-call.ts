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

/** So many calls in one run of an agent; the figures are per call. */
const CALLS = 20;
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
    run(): Promise<readonly string[]>;
    close(): Promise<void>;
  }>;
}

function arm(subject: Subject, transport: Transport, http: HttpServer): Arm {
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
      answers = await opened!.run();
      const value = (performance.now() - start) / CALLS;
      const { user, system } = process.cpuUsage(cpu);
      return { value, cpu: (user + system) / 1000 / CALLS };
    },
    answer: async () => answers,
    teardown: async () => {
      await opened?.close();
      if (transport === 'http') await http.stop();
    },
  };
}

/** An agent of the AI SDK that calls one tool after the other. */
async function throughAi(
  name: string,
  settings: { readonly tools: ToolSet },
): Promise<readonly string[]> {
  let call = 0;
  const none = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
  const model = new MockLanguageModelV4({
    doGenerate: async () => ({
      content:
        call++ < CALLS
          ? [
              {
                type: 'tool-call',
                toolCallId: `c${call}`,
                toolName: name,
                input: JSON.stringify({ message: textOf(call) }),
              },
            ]
          : [{ type: 'text', text: 'done' }],
      finishReason: { unified: call <= CALLS ? 'tool-calls' : 'stop', raw: undefined },
      usage: { inputTokens: none, outputTokens: { total: 1, text: 1, reasoning: undefined } },
      warnings: [],
    }),
  });
  const { steps } = await generateText({
    ...settings,
    model,
    prompt: 'go',
    stopWhen: isStepCount(CALLS + 1),
  });
  return steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => contentText(output)));
}

/** An agent of LangChain that does the same. */
async function throughLangchain(name: string, parts: object): Promise<readonly string[]> {
  const model = fakeModel();
  for (let call = 1; call <= CALLS; call++) {
    model.respondWithTools([{ name, args: { message: textOf(call) }, id: `c${call}` }]);
  }
  model.respond(new AIMessage('done'));
  const agent = createAgent({ model, ...(parts as { tools: [] }) });
  const { messages } = await agent.invoke(
    { messages: [{ role: 'user', content: 'go' }] },
    { recursionLimit: 4 * CALLS },
  );
  return messages.filter((message) => message.getType() === 'tool').map((message) => message.text);
}

function contentText(output: unknown): string {
  const { content } = output as { readonly content: readonly { readonly text?: string }[] };
  return content.map(({ text }) => text ?? '').join('');
}

function patchbay(
  use: (view: ReturnType<ExtensionRegistry['view']>) => Promise<readonly string[]>,
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
        run: () => use(view),
        close: async () => {
          await registry.close();
          await connections.close();
        },
      };
    },
  };
}

const aiSubjects: readonly Subject[] = [
  patchbay((view) => throughAi('all__echo', aiSdk(view))),
  {
    name: '@ai-sdk/mcp',
    open: async ({ url }) => {
      const client = await createMCPClient({
        transport:
          url === undefined ? new Experimental_StdioMCPTransport(STDIO) : { type: 'http', url },
      });
      const tools = (await client.tools()) as ToolSet;
      return { run: () => throughAi('echo', { tools }), close: () => client.close() };
    },
  },
];

const langchainSubjects: readonly Subject[] = [
  patchbay((view) => throughLangchain('all__echo', langchain(view))),
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
      return { run: () => throughLangchain('echo', { tools }), close: () => client.close() };
    },
  },
];

function singleCall(
  framework: string,
  transport: Transport,
  subjects: readonly Subject[],
  cpu: number,
  value: number,
): Case {
  const http = new HttpServer();
  const against = subjects[1]!.name;
  return {
    name: `one call, ${transport}, through ${framework}`,
    unit: 'ms',
    arms: subjects.map((subject) => arm(subject, transport, http)),
    goals: [
      { arm: 'patchbay', against, of: 'cpu', atMost: cpu },
      { arm: 'patchbay', against, of: 'value', atMost: value },
    ],
  };
}

export const singleCalls: readonly Case[] = [
  singleCall('ai', 'stdio', aiSubjects, 0.65, 0.95),
  singleCall('ai', 'http', aiSubjects, 0.35, 0.4),
  singleCall('LangChain', 'stdio', langchainSubjects, 0.55, 0.7),
  singleCall('LangChain', 'http', langchainSubjects, 0.28, 0.35),
];
