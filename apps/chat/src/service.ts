import { createReadStream } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';

import { aiSdk } from '@patchbay/ai-sdk';
import { createHost, type Host } from '@patchbay/host';
import { PatchbayError } from '@patchbay/protocols';
import { createAgentUIStreamResponse, ToolLoopAgent, type LanguageModel, type UIMessage } from 'ai';

const app = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);
const EVERYTHING = join(
  dirname(require.resolve('@modelcontextprotocol/server-everything/package.json')),
  'dist/index.js',
);
const TENANTS = ['acme', 'globex'];

export interface ChatService {
  readonly url: string;
  readonly host: Host;
  close(): Promise<void>;
}

/** One process for many tenants: `POST /chat` speaks the stream of `useChat`, everything else is the page. */
export async function startService(model: LanguageModel, port = 0): Promise<ChatService> {
  const host = await createHost({
    cwd: app,
    home: false,
    env: { NODE: process.execPath, EVERYTHING },
  });

  const chat = async (request: Request): Promise<Response> => {
    const user = authenticate(request);
    if (user === undefined) return new Response('Who are you?', { status: 401 });
    const { id, messages } = (await request.json()) as { id: string; messages: UIMessage[] };
    // A session id belongs to the identity that opened it first: the tenant is part of it.
    await using session = await host.openSession(id, {
      identity: user,
      skills: [join(app, 'tenants', user.tenant, 'skills')],
    });
    const agent = new ToolLoopAgent({ model, ...aiSdk(session.agent('support').view()) });
    return createAgentUIStreamResponse({
      agent,
      uiMessages: messages,
      abortSignal: request.signal,
    });
  };

  const server = createServer((incoming, outgoing) => void serve(chat, incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as { readonly port: number }).port}`,
    host,
    close: async () => {
      await closed(server);
      await host.close();
    },
  };
}

/** `Authorization: Bearer alice@acme`: stands for whatever a service really has. */
function authenticate(request: Request) {
  const [, id, tenant = ''] =
    /^Bearer ([\w-]+)@([\w-]+)$/.exec(request.headers.get('authorization') ?? '') ?? [];
  return id === undefined || !TENANTS.includes(tenant)
    ? undefined
    : { id: `${id}@${tenant}`, tenant };
}

async function serve(
  chat: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  if (incoming.method !== 'POST') {
    outgoing.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    createReadStream(join(app, 'public/index.html')).pipe(outgoing);
    return;
  }
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
    const { body, status, headers } = await chat(request);
    outgoing.writeHead(status, Object.fromEntries(headers));
    if (body === null) outgoing.end();
    else await pipeline(Readable.fromWeb(body), outgoing);
  } catch (error) {
    if (outgoing.headersSent) return void outgoing.destroy();
    const refused = PatchbayError.isInstance(error) && error.code === 'identity-mismatch';
    outgoing
      .writeHead(refused ? 403 : 500)
      .end(refused ? 'This chat is of somebody else.' : 'It failed.');
  }
}

async function closed(server: Server): Promise<void> {
  const end = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await end;
}
