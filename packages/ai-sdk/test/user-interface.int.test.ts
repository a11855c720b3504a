import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { ApprovalPolicy } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer } from '@patchbay/testkit';
import type * as ai7 from 'ai';
import { describe, expect, it } from 'vitest';

import { aiSdk } from '../src/index.ts';
import { call, MAJORS, outputs, scripted, text, type Major, type Reply } from './majors.ts';

const policy: ApprovalPolicy = ({ tool }) => (tool.id.name === 'pay' ? 'ask' : 'allow');

/** A shop over MCP: one tool pays, one looks, one fails. */
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
): Promise<ai7.UIMessage[]> {
  const transport = new ai.DefaultChatTransport({ api: url });
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

const go: ai7.UIMessage = { id: '1', role: 'user', parts: [{ type: 'text', text: 'go' }] };

describe.each(MAJORS)('a chat over HTTP, on ai $major', (major) => {
  it('shows results and errors of tools as parts of the message', async () => {
    await using server = await shop();
    await using route = await serve(major, server.config, [
      [call('1', 'shop__look'), call('2', 'shop__fail')],
      [text('done')],
    ]);
    const messages = await chat(major, route.url, [go]);
    const parts = toolParts(messages);
    expect(parts).toMatchObject([
      { toolName: 'shop__look', state: 'output-available' },
      { toolName: 'shop__fail', state: 'output-error' },
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

      const answered = asked.map((message) => ({
        ...message,
        parts: message.parts.map((one) =>
          'approval' in one
            ? { ...one, state: 'approval-responded', approval: { ...one.approval, approved } }
            : one,
        ),
      })) as ai7.UIMessage[];
      await using second = await serve(major, server.config, [[text('done')], [text('again')]]);
      const done = await chat(major, second.url, answered);
      expect(server.executions('pay')).toBe(executions);
      expect(outputs(second.seen[0])['shop__pay']?.type).toBe(type);

      const next: ai7.UIMessage = { ...go, id: '3' };
      await chat(major, second.url, [...done, next]);
      expect(server.executions('pay')).toBe(executions);
    },
  );
});
