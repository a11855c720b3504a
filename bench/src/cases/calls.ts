import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { AIMessage, type ToolMessage } from '@langchain/core/messages';
import type { StructuredTool } from '@langchain/core/tools';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { aiSdk } from '@patchbay/ai-sdk';
import { ConnectionPool } from '@patchbay/connection-pool';
import { langchain, toTools } from '@patchbay/langchain';
import { McpServerCapability } from '@patchbay/mcp';
import type { ExtensionView, ServerConfig } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import {
  asSchema,
  generateText,
  isStepCount,
  type ModelMessage,
  type Tool,
  type ToolSet,
} from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createAgent, fakeModel } from 'langchain';

import type { Arm, Case, Cost, Goal } from '../case.ts';
import { FloorClient, plainServer } from '../plain-server.ts';

/** What is called in one run of an arm. The figures are per call. */
interface Work {
  /** One after the other. */
  readonly steps: number;
  /** Calls in each step. */
  readonly atOnce: number;
}

const CALLS = {
  oneByOne: {
    stdio: { steps: 200, atOnce: 1 },
    HTTP: { steps: 50, atOnce: 1 },
    'event stream': { steps: 50, atOnce: 1 },
  },
  atOnce: {
    stdio: { steps: 4, atOnce: 64 },
    HTTP: { steps: 2, atOnce: 64 },
    'event stream': { steps: 2, atOnce: 64 },
  },
} as const;
const STEPS = { oneByOne: { steps: 20, atOnce: 1 }, atOnce: { steps: 1, atOnce: 64 } } as const;
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

/**
 * - `stdio`, `event stream`: the server that MCP has for tests; over HTTP it answers by an event stream.
 * - `HTTP`: the least server there can be, which answers in JSON: what is measured is the client.
 */
type Transport = 'stdio' | 'HTTP' | 'event stream';

/** The same program for every arm of a case over HTTP. */
export class HttpServer {
  readonly #transport: Exclude<Transport, 'stdio'>;
  #child: ChildProcess | undefined;
  url = '';

  constructor(transport: Exclude<Transport, 'stdio'>) {
    this.#transport = transport;
  }

  async start(): Promise<void> {
    await (this.#transport === 'HTTP' ? this.#startPlain() : this.#startEverything());
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async #startPlain(): Promise<void> {
    const { command, args } = plainServer();
    const child = spawn(command, [...args, '--http'], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    const [port] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
    this.url = `http://127.0.0.1:${port.trim()}/mcp`;
  }

  async #startEverything(): Promise<void> {
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
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** What an arm is made of: how it connects, and what it does with the tool that echoes. */
interface Subject {
  readonly name: string;
  open(server: ServerConfig & { readonly url?: string }): Promise<{
    run(work: Work): Promise<readonly string[]>;
    close(): Promise<void>;
  }>;
}

function arm(subject: Subject, transport: Transport, work: Work): Arm {
  const http = transport === 'stdio' ? undefined : new HttpServer(transport);
  const calls = work.steps * work.atOnce;
  let opened: Awaited<ReturnType<Subject['open']>> | undefined;
  let answers: readonly string[] = [];
  return {
    name: subject.name,
    setup: async () => {
      await http?.start();
      opened = await subject.open(http === undefined ? STDIO : { url: http.url });
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
      await http?.stop();
    },
  };
}

/** The calls of each step, numbered through. */
const callsOf = ({ steps, atOnce }: Work): readonly (readonly number[])[] =>
  Array.from({ length: steps }, (_, step) =>
    Array.from({ length: atOnce }, (_one, i) => step * atOnce + i + 1),
  );

/** Calls a tool by itself, as a framework does within a step. */
async function calling(
  work: Work,
  call: (args: { readonly message: string }, id: string) => Promise<string>,
): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const step of callsOf(work))
    answers.push(...(await Promise.all(step.map((i) => call({ message: textOf(i) }, `c${i}`)))));
  return answers;
}

/**
 * What a running step of the AI SDK does with a tool for each call: arguments are validated, an approval is asked for, it is
 * executed, and its output is made into what the model reads.
 */
async function callOfAi(
  tool: ToolSet[string],
  args: unknown,
  toolCallId: string,
  messages: ModelMessage[],
): Promise<string> {
  const { inputSchema, needsApproval, execute, toModelOutput } = tool as Tool;
  const check = await asSchema(inputSchema).validate?.(args);
  if (check?.success === false) throw check.error;
  const input: unknown = check?.value ?? args;
  const options = { toolCallId, messages, context: {} };
  const needed = typeof needsApproval === 'function' ? await needsApproval(input, options) : false;
  if (needed) throw new Error('Nobody is there to be asked.');
  const output: unknown = await execute!(input, options);
  await toModelOutput?.({ toolCallId, input, output });
  return contentText(output);
}

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

/** What is measured through a framework: of ours by the view, of a peer by its tools. */
interface Use<TOOLS> {
  readonly ours: (view: ExtensionView) => Promise<(work: Work) => Promise<readonly string[]>>;
  readonly theirs: (tools: TOOLS, work: Work) => Promise<readonly string[]>;
}

function patchbay(ours: Use<never>['ours']): Subject {
  return {
    name: 'patchbay',
    open: async (server) => {
      const connections = new ConnectionPool();
      const registry = new ExtensionRegistry();
      registry.register(new McpServerCapability({ id: 'all', server, connections }));
      const view = registry.view();
      await view.compile();
      return {
        run: await ours(view),
        close: async () => {
          await registry.close();
          await connections.close();
        },
      };
    },
  };
}

function aiSdkMcp(theirs: Use<ToolSet>['theirs']): Subject {
  return {
    name: '@ai-sdk/mcp',
    open: async ({ url }) => {
      const client = await createMCPClient({
        transport:
          url === undefined ? new Experimental_StdioMCPTransport(STDIO) : { type: 'http', url },
      });
      const tools = (await client.tools()) as ToolSet;
      return { run: (work) => theirs(tools, work), close: () => client.close() };
    },
  };
}

function mcpAdapters(theirs: Use<readonly StructuredTool[]>['theirs']): Subject {
  return {
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
      const tools = (await client.getTools()) as StructuredTool[];
      return { run: (work) => theirs(tools, work), close: () => client.close() };
    },
  };
}

/** Nothing but the messages, over the pipe. */
const floor: Subject = {
  name: 'floor',
  open: async () => {
    const client = new FloorClient(STDIO);
    await client.initialize();
    return {
      run: (work) =>
        calling(work, async (args) =>
          contentText(await client.request('tools/call', { name: 'echo', arguments: args })),
        ),
      close: () => client.close(),
    };
  },
};

const ofAi: Readonly<Record<'call' | 'step', Use<ToolSet>>> = {
  call: {
    ours: async (view) => {
      const { tools, prepareStep } = aiSdk(view);
      return async (work) => {
        const messages: ModelMessage[] = [{ role: 'user', content: 'go' }];
        // As `generateText` does before a step: the messages of a step lead to its turn.
        const step = { steps: [], stepNumber: 0, messages, initialInstructions: undefined };
        await prepareStep(step);
        return calling(work, (args, id) => callOfAi(tools['all__echo']!, args, id, messages));
      };
    },
    theirs: (tools, work) => {
      const messages: ModelMessage[] = [{ role: 'user', content: 'go' }];
      return calling(work, (args, id) => callOfAi(tools['echo']!, args, id, messages));
    },
  },
  step: {
    ours: async (view) => (work) => throughAi('all__echo', work, aiSdk(view)),
    theirs: (tools, work) => throughAi('echo', work, { tools }),
  },
};

const callOfLangchain = (tools: readonly StructuredTool[], name: string, work: Work) => {
  const tool = tools.find((one) => one.name === name)!;
  return calling(work, async (args, id) => {
    const call = { type: 'tool_call', name, args, id } as const;
    // Not `text`, which LangChain makes for whoever reads it.
    return ((await tool.invoke(call)) as ToolMessage).content as string;
  });
};

const ofLangchain: Readonly<Record<'call' | 'step', Use<readonly StructuredTool[]>>> = {
  call: {
    ours: async (view) => {
      const tools = await toTools(view);
      return (work) => callOfLangchain(tools, 'all__echo', work);
    },
    theirs: (tools, work) => callOfLangchain(tools, 'echo', work),
  },
  step: {
    ours: async (view) => (work) => throughLangchain('all__echo', work, langchain(view)),
    theirs: (tools, work) => throughLangchain('echo', work, { tools }),
  },
};

const subjectsOf = {
  ai: (what: 'call' | 'step') => [patchbay(ofAi[what].ours), aiSdkMcp(ofAi[what].theirs)],
  LangChain: (what: 'call' | 'step') => [
    patchbay(ofLangchain[what].ours),
    mcpAdapters(ofLangchain[what].theirs),
  ],
} as const;

type Framework = keyof typeof subjectsOf;
type AtMost = Readonly<Partial<Record<'cpu' | 'value', number>>>;

const goalsOf = (against: string, atMost: AtMost): readonly Goal[] =>
  (['cpu', 'value'] as const).flatMap((of) =>
    atMost[of] === undefined ? [] : [{ arm: 'patchbay', against, of, atMost: atMost[of] }],
  );

/** Calls of one tool, one after the other or many at once: what the way of a call costs, without the framework's own step. */
function callsCase(
  framework: Framework,
  transport: Transport,
  how: keyof typeof CALLS,
  atMost: AtMost,
  ofFloor?: AtMost,
): Case {
  const [ours, peer] = subjectsOf[framework]('call') as [Subject, Subject];
  const subjects = ofFloor === undefined ? [ours, peer] : [ours, peer, floor];
  return {
    name: `${how === 'oneByOne' ? 'one call' : '64 calls at once'}, ${transport}, through ${framework}`,
    unit: 'ms',
    arms: subjects.map((subject) => arm(subject, transport, CALLS[how][transport])),
    goals: [...goalsOf(peer.name, atMost), ...goalsOf('floor', ofFloor ?? {})],
  };
}

/** Whole steps of an agent with a model that answers at once: most of it is the framework. No goal: the ratio is told. */
function agentCase(framework: Framework, transport: Transport, how: keyof typeof STEPS): Case {
  const subjects = subjectsOf[framework]('step');
  const step = how === 'oneByOne' ? 'with one call' : 'with 64 calls at once';
  return {
    name: `step of an agent ${step}, ${transport}, through ${framework}`,
    unit: 'ms',
    arms: subjects.map((subject) => arm(subject, transport, STEPS[how])),
    goals: [],
  };
}

/** Milliseconds per call. */
export const singleCalls: readonly Case[] = [
  callsCase('ai', 'stdio', 'oneByOne', { cpu: 0.65, value: 0.95 }, { cpu: 2, value: 1.15 }),
  callsCase('ai', 'HTTP', 'oneByOne', { cpu: 0.35, value: 0.4 }),
  callsCase('LangChain', 'stdio', 'oneByOne', { cpu: 0.55, value: 0.7 }),
  callsCase('LangChain', 'HTTP', 'oneByOne', { cpu: 0.28, value: 0.35 }),
  // Most of it is the server: no goal.
  callsCase('ai', 'event stream', 'oneByOne', {}),
  callsCase('LangChain', 'event stream', 'oneByOne', {}),
];

/** Milliseconds per call: the throughput, turned around. */
export const callsAtOnce: readonly Case[] = [
  callsCase('ai', 'stdio', 'atOnce', { value: 1 / 1.6 }),
  callsCase('ai', 'HTTP', 'atOnce', { value: 1 / 3 }),
  callsCase('LangChain', 'stdio', 'atOnce', { value: 1 / 2 }),
  callsCase('LangChain', 'HTTP', 'atOnce', { value: 1 / 4 }),
];

const agents = (how: keyof typeof STEPS): readonly Case[] =>
  (['ai', 'LangChain'] as const).flatMap((framework) =>
    (['stdio', 'event stream'] as const).map((transport) => agentCase(framework, transport, how)),
  );

/** Milliseconds per call. */
export const agentSteps: readonly Case[] = agents('oneByOne');
export const agentStepsAtOnce: readonly Case[] = agents('atOnce');
