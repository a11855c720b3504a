import { once } from 'node:events';
import { Server, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeStream } from 'node:stream/web';

import { PatchbayError } from '@patchbay/protocols';
import { simulateReadableStream } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';

// What program 04 declares and leaves to its readers: who asks, requests of the web on a Node server, and a model.

/** `Authorization: alice@acme`. */
async function authenticate(request: Request) {
  const [id = '', tenant = ''] = (request.headers.get('authorization') ?? '').split('@');
  return { id, tenant, token: `token of ${id}` };
}

const toNodeHandler =
  (handler: (request: Request) => Promise<Response>) =>
  (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    void answer(handler, incoming, outgoing);
  };

async function answer(
  handler: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once('close', () => gone.abort());
  const request = new Request(`http://127.0.0.1${incoming.url}`, {
    method: 'POST',
    headers: { authorization: incoming.headers.authorization ?? '' },
    body: Readable.toWeb(incoming),
    duplex: 'half',
    signal: gone.signal,
  });
  try {
    const { body, status, headers } = await handler(request);
    outgoing.writeHead(status, { ...Object.fromEntries(headers), connection: 'close' });
    await pipeline(Readable.fromWeb(body as NodeStream), outgoing);
  } catch (error) {
    if (outgoing.headersSent) return;
    const refused = PatchbayError.isInstance(error) && error.code === 'identity-mismatch';
    outgoing.writeHead(refused ? 403 : 500, { connection: 'close' }).end(String(error));
  }
}

type Call = Parameters<MockLanguageModelV4['doStream']>[0];

/** Calls the tool that the last message names; says which skills it sees, and what the tool answered. */
const model = new MockLanguageModelV4({
  doStream: async ({ prompt, tools = [] }: Call) => {
    const last = prompt.at(-1)!;
    const text = JSON.stringify(last.content);
    const [, toolName] = /call (\w+)/.exec(text) ?? [];
    const system = prompt.flatMap(({ role, content }) => (role === 'system' ? [content] : []));
    const names = tools.map(({ name }) => name).join(' ');
    const [, input = '{}'] = /with (\{.*?\})/.exec(text.replaceAll('\\"', '"')) ?? [];
    const none = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
    return {
      stream: simulateReadableStream({
        chunks: [
          { type: 'stream-start', warnings: [] },
          ...(last.role === 'user' && toolName !== undefined
            ? [{ type: 'tool-call' as const, toolCallId: `c${prompt.length}`, toolName, input }]
            : [
                { type: 'text-start' as const, id: '1' },
                {
                  type: 'text-delta' as const,
                  id: '1',
                  delta: `tools: ${names}; instructions: ${system.join(' ')}; last: ${text}`,
                },
                { type: 'text-end' as const, id: '1' },
              ]),
          {
            type: 'finish',
            finishReason: {
              unified: toolName === undefined ? 'stop' : 'tool-calls',
              raw: undefined,
            },
            usage: { inputTokens: none, outputTokens: { total: 1, text: 1, reasoning: undefined } },
          },
        ],
      }),
    };
  },
});

Object.assign(globalThis, {
  authenticate,
  toNodeHandler,
  AI_SDK_DEFAULT_PROVIDER: { languageModel: () => model, specificationVersion: 'v4' },
});

// On this machine only, on a port that is free.
const { listen } = Server.prototype as { listen: (port: number, host: string) => Server };
Server.prototype.listen = function (this: Server) {
  void once(this, 'listening').then(() =>
    console.log(`listening on ${(this.address() as AddressInfo).port}`),
  );
  return listen.call(this, 0, '127.0.0.1');
};

await import('../programs/04-tenants.ts');
