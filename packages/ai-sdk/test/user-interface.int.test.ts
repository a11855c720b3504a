import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text as read } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { ApprovalPolicy } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer } from '@patchbay/testkit';
import type * as ai7 from 'ai';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';

import { aiSdk } from '../src/index.ts';
import { call, MAJORS, outputs, scripted, text, type Major, type Reply } from './majors.ts';

const policy: ApprovalPolicy = ({ tool }) => (tool.id.name === 'pay' ? 'ask' : 'allow');

/** A shop over MCP: one tool pays, one looks, one fails, and one is an error of the protocol. */
const shop = () =>
  scriptedServer({
    transport: 'http',
    tools: [
      { name: 'pay', onCall: () => 'paid' },
      { name: 'look', onCall: () => 'looked' },
      {
        name: 'fail',
        onCall: () => ({ content: [{ type: 'text', text: 'sold out' }], isError: true }),
      },
      { name: 'refuse', onCall: 'rpc-error' },
    ],
  });

/** A chat route: all that it has is made for one request, as in a function that a platform starts for it. */
async function serve(major: Major, config: object, reply: Reply | Parameters<typeof scripted>[1]) {
  const { model, seen } = scripted(major, reply);
  const http = createServer(async (request, response) => {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as { messages: unknown[] };
      const connections = new ConnectionPool();
      const registry = new ExtensionRegistry({ approval: policy });
      registry.register(
        new McpServerCapability({ id: 'shop', server: config as never, connections }),
      );
      const extensions = aiSdk(registry.view());
      await extensions.toolsForMessages(messages as object[]);
      const agent = new major.ai.ToolLoopAgent({ model, ...extensions });
      const answer = await major.ai.createAgentUIStreamResponse({ agent, uiMessages: messages });
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.on('close', () => void registry.close().then(() => connections.close()));
      Readable.fromWeb(answer.body as never).pipe(response);
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done));
  return {
    seen,
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((done) => {
        http.close(() => done());
        http.closeAllConnections();
      }),
  };
}

type Part = Readonly<Record<string, unknown>> & { readonly type: string };

/** What `useChat` does with a route: sends all messages, reads the stream into the last one of the assistant. */
async function chat(
  { ai }: Major,
  url: string,
  messages: readonly ai7.UIMessage[],
  fetching: typeof fetch = fetch,
): Promise<ai7.UIMessage[]> {
  const transport = new ai.DefaultChatTransport({ api: url, fetch: fetching });
  const stream = await transport.sendMessages({
    chatId: 'c',
    trigger: 'submit-message',
    messageId: undefined,
    messages: [...messages],
    abortSignal: undefined,
  });
  const last = messages.at(-1);
  let answer: ai7.UIMessage | undefined;
  const goesOn = last?.role === 'assistant' ? { message: last } : {};
  for await (const message of ai.readUIMessageStream({ stream, ...goesOn })) answer = message;
  const before = last?.role === 'assistant' ? messages.slice(0, -1) : messages;
  return JSON.parse(JSON.stringify([...before, answer])) as ai7.UIMessage[];
}

const toolParts = (messages: readonly ai7.UIMessage[]): readonly Part[] =>
  (messages.at(-1)!.parts as unknown as readonly Part[]).filter(
    ({ type }) => type === 'dynamic-tool',
  );

/** Says yes or no to whatever is asked. */
const answer = (messages: readonly ai7.UIMessage[], approved: boolean) =>
  messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      'approval' in part
        ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved } }
        : part,
    ),
  })) as ai7.UIMessage[];

/** `fixtures/request/program.ts` as one file that plain Node runs. */
async function bundled() {
  const folder = await mkdtemp(join(tmpdir(), 'patchbay-request-'));
  const file = join(folder, 'program.mjs');
  await build({
    entryPoints: [fileURLToPath(new URL('fixtures/request/program.ts', import.meta.url))],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['@patchbay/source'],
    banner: {
      js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`,
    },
    logLevel: 'error',
  });
  return { file, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** A route that starts a process for a request; the process reads it, writes the answer, and has to end by itself. */
function start(args: readonly string[]) {
  const child = spawn(process.execPath, args);
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  const errors = read(child.stderr);
  const route: typeof fetch = async (_, init) => {
    child.stdin.end(init?.body);
    return new Response(Readable.toWeb(child.stdout) as never);
  };
  return { route, ended, errors };
}

const go: ai7.UIMessage = { id: '1', role: 'user', parts: [{ type: 'text', text: 'go' }] };

describe.each(MAJORS)('a chat over HTTP, on ai $major', (major) => {
  it('vercel-ai-10731: shows results and errors of tools, of the protocol too, as parts of the message', async () => {
    await using server = await shop();
    await using route = await serve(major, server.config, [
      [call('1', 'shop__look'), call('2', 'shop__fail'), call('3', 'shop__refuse')],
      [text('done')],
    ]);
    const messages = await chat(major, route.url, [go]);
    const parts = toolParts(messages);
    expect(parts).toMatchObject([
      { toolName: 'shop__look', state: 'output-available' },
      { toolName: 'shop__fail', state: 'output-error' },
      { toolName: 'shop__refuse', state: 'output-error' },
    ]);
    expect(messages.at(-1)!.parts).toContainEqual(expect.objectContaining({ text: 'done' }));
  });

  it.each([
    [true, 1, 'text'],
    [false, 0, 'execution-denied'],
  ])(
    'asks for an approval, and keeps to the answer %s in another request, once',
    async (approved, executions, type) => {
      await using server = await shop();
      let asked: ai7.UIMessage[];
      {
        await using first = await serve(major, server.config, [[call('1', 'shop__pay')]]);
        asked = await chat(major, first.url, [go]);
      }
      const [part] = toolParts(asked);
      expect(part).toMatchObject({ toolName: 'shop__pay', state: 'approval-requested' });
      expect(server.executions('pay')).toBe(0);

      const answered = answer(asked, approved);
      await using second = await serve(major, server.config, [[text('done')], [text('again')]]);
      const done = await chat(major, second.url, answered);
      expect(server.executions('pay')).toBe(executions);
      expect(outputs(second.seen[0])['shop__pay']?.type).toBe(type);

      const next: ai7.UIMessage = { ...go, id: '3' };
      await chat(major, second.url, [...done, next]);
      expect(server.executions('pay')).toBe(executions);
    },
  );

  it('answers an approval for a tool that its server has no more, and goes on', async () => {
    await using server = await shop();
    let asked: ai7.UIMessage[];
    {
      await using first = await serve(major, server.config, [[call('1', 'shop__pay')]]);
      asked = await chat(major, first.url, [go]);
    }
    server.setTools([{ name: 'look' }]);
    await using second = await serve(major, server.config, [[text('It is closed.')]]);
    const done = await chat(major, second.url, answer(asked, true));
    expect(toolParts(done)).toMatchObject([{ toolName: 'shop__pay', state: 'output-error' }]);
    expect(outputs(second.seen[0])['shop__pay']?.value).toContain('not available (any more)');
    expect(done.at(-1)!.parts).toContainEqual(expect.objectContaining({ text: 'It is closed.' }));
    expect(server.executions('pay')).toBe(0);
  });
});

describe('a process that is started for one request', () => {
  let program: Awaited<ReturnType<typeof bundled>>;
  beforeAll(async () => {
    program = await bundled();
  });
  afterAll(() => program.remove());

  it.each(MAJORS)(
    'makes the call that was approved meanwhile, once, answers, and ends by itself: ai $major',
    async (major) => {
      await using server = await shop();
      await using near = await scriptedServer({
        tools: [{ name: 'look', onCall: () => 'looked' }],
      });
      await using first = await serve(major, server.config, [[call('1', 'shop__pay')]]);
      const asked = await chat(major, first.url, [go]);

      const configs = JSON.stringify({ shop: server.config, near: near.config });
      const { route, ended, errors } = start([program.file, `${major.major}`, configs]);
      const done = await chat(major, 'http://function/', answer(asked, true), route);
      expect(await ended).toEqual([0, null]);
      expect(toolParts(done)).toMatchObject([
        { toolName: 'shop__pay', state: 'output-available' },
        { toolName: 'near__look', state: 'output-available' },
      ]);
      expect(server.executions('pay')).toBe(1);
      const pids = JSON.parse(await errors) as readonly number[];
      expect(pids).toHaveLength(1);
      for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    },
  );
});
