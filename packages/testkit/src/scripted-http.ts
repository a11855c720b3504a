import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

import type { HttpServerConfig } from '@patchbay/protocols';

import { admit, isMetadata, metadataOf } from './protection.ts';
import {
  ScriptedSession,
  type Message,
  type ScriptedState,
  type Wire,
} from './scripted-session.ts';
import { listening, type Listener } from './scripted-stdio.ts';

const PATH = '/mcp';
const SESSION_HEADER = 'mcp-session-id';

/** Serves it as Streamable HTTP: answers as event streams; legacy clients get a session, modern ones are stateless. */
export async function listenHttp(state: ScriptedState): Promise<Listener<HttpServerConfig>> {
  const sessions = new Map<string, ScriptedSession>();
  const streams = new Set<ServerResponse>();
  const unheard: string[] = [];
  let url = '';

  /** `false` after it was refused. */
  const admitted = (request: IncomingMessage, response: ServerResponse, message?: Message) => {
    if (state.protection === undefined) return undefined;
    const decision = admit(state.protection, url, request, message);
    if (!('status' in decision)) return decision;
    state.refusals.push(decision.status);
    response.writeHead(decision.status, decision.headers).end();
    return false;
  };

  const sessionOf = (request: IncomingMessage, message: Message, response: ServerResponse) => {
    // Without sessions each request is on its own.
    if (state.era === 'modern' || message.method === 'server/discover') {
      return new ScriptedSession(state);
    }
    if (message.method !== 'initialize') {
      return sessions.get(String(request.headers[SESSION_HEADER]));
    }
    const id = `session-${sessions.size + 1}`;
    const session = new ScriptedSession(state);
    sessions.set(id, session);
    response.setHeader(SESSION_HEADER, id);
    return session;
  };

  const post = async (request: IncomingMessage, response: ServerResponse) => {
    const message = JSON.parse(await text(request)) as Message;
    const grant = admitted(request, response, message);
    if (grant === false) return;
    const session = sessionOf(request, message, response);
    if (session === undefined) {
      response.writeHead(404).end();
      return;
    }
    const wire: Wire = {
      grant,
      send: (sent) => {
        openStream(response);
        response.write(`data: ${typeof sent === 'string' ? sent : JSON.stringify(sent)}\n\n`);
      },
      die: () => void request.socket.destroy(),
    };
    if (message.id === undefined || message.method === undefined) {
      await session.handle(message, wire);
      response.writeHead(202).end();
      return;
    }
    response.on('close', () => {
      if (!response.writableFinished) session.cancel(message.id);
    });
    const answering = session.handle(message, wire);
    if (message.method === 'tools/call') openStream(response);
    if (await answering) response.end();
  };

  const metadata = (response: ServerResponse) => {
    const found = state.protection === undefined ? undefined : metadataOf(state.protection, url);
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(found === undefined ? '' : JSON.stringify(found));
  };

  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', url);
    if (pathname !== PATH) {
      if (isMetadata(pathname, PATH)) metadata(response);
      else response.writeHead(404).end();
    } else if (request.method === 'POST') {
      post(request, response).catch(() => response.destroy());
    } else if (admitted(request, response) === false) {
      // It has its answer.
    } else if (request.method === 'GET' && state.era === 'legacy') {
      openStream(response);
      streams.add(response);
      for (const event of unheard.splice(0)) response.write(event);
      response.on('close', () => streams.delete(response));
    } else {
      if (request.method === 'DELETE') sessions.delete(String(request.headers[SESSION_HEADER]));
      response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
    }
  });
  url = `http://127.0.0.1:${await listening(server)}${PATH}`;
  return {
    config: { url },
    broadcast: (message) => {
      const event = `data: ${JSON.stringify(message)}\n\n`;
      for (const stream of streams) stream.write(event);
      if (streams.size === 0) unheard.push(event);
    },
    cut: () => server.closeAllConnections(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function openStream(response: ServerResponse): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(': open\n\n');
}
