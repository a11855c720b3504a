import type { JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { withSignal, type Stop } from '@patchbay/protocols';

import type { HttpRequests } from '../http/http-carrier.ts';
import { pause } from '../pause.ts';
import { TOO_LARGE } from '../stand-in.ts';
import { answerId } from '../stdio/answer-id.ts';
import { isObject } from '../wire-content.ts';
import { EventReader } from './event-reader.ts';
import type { Answer } from './incoming.ts';
import type { Post } from './own-calls.ts';
import type { Send } from './send.ts';

type Sdk = typeof import('@modelcontextprotocol/client');

/** Milliseconds until a stream that was cut is asked for again, unless the server says how many; and at most. */
const RESUME_MS = { first: 250, most: 5_000 };
const MAX_RESUMES = 3;
/** How much of what a server says of a failure is read, in bytes. */
const MAX_SAID = 1_000_000;

/** Sends calls by `undici` itself: a `fetch` for each would cost more than everything else. (Streamable HTTP, both eras) */
export function postOverHttp(
  sdk: Sdk,
  transport: StreamableHTTPClientTransport,
  {
    url,
    headers: configured,
    maxBytes,
    send,
  }: Pick<HttpRequests, 'headers' | 'maxBytes'> & { readonly url: URL; readonly send: Send },
): Post {
  const base = {
    'user-agent': 'node',
    ...Object.fromEntries(
      Object.entries(configured).map(([name, value]) => [name.toLowerCase(), value]),
    ),
    'accept-encoding': 'gzip, deflate, br',
  };

  const tooLarge = () =>
    sdk.ProtocolError.fromError(-32_000, 'a message of the server is too long', {
      [TOO_LARGE]: maxBytes,
    });

  const headersNow = (): Record<string, string> => {
    const headers: Record<string, string> = { ...base };
    const { sessionId, protocolVersion } = transport;
    if (sessionId !== undefined) headers['mcp-session-id'] = sessionId;
    if (protocolVersion !== undefined) headers['mcp-protocol-version'] = protocolVersion;
    return headers;
  };

  let posted: Readonly<Record<string, string>> | undefined;
  /** Those of every call, made once for each session. */
  const headersOfPost = (): Readonly<Record<string, string>> => {
    const isSame =
      posted?.['mcp-session-id'] === transport.sessionId &&
      posted?.['mcp-protocol-version'] === transport.protocolVersion;
    if (posted === undefined || !isSame)
      posted = Object.freeze({
        ...headersNow(),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      });
    return posted;
  };

  const ask = (init: Omit<Parameters<Send>[1], 'signal'>): Promise<Answer> =>
    send(url, withSignal(init));

  /** Servers of 2025-03-26 may send several messages at once. */
  const deliver = (text: string) => {
    const parsed: unknown = JSON.parse(text);
    for (const one of Array.isArray(parsed) ? (parsed as readonly unknown[]) : [parsed]) {
      if (!isObject(one) || one['jsonrpc'] !== '2.0')
        throw new Error('This is no message of JSON-RPC.');
      transport.onmessage?.(one as unknown as JSONRPCMessage);
    }
  };

  /** Reads events until the stream ends. It goes on after the answer, so that the socket can be used again. */
  const readEvents = async (answer: Answer, reader: EventReader) => {
    try {
      await answer.read((chunk) => reader.push(chunk));
    } catch {
      // Cut is as if it had ended: perhaps it can be resumed.
      if (reader.failure !== undefined) throw reader.failure;
    }
  };

  const follow = async (answer: Answer, stop: Stop, isOpen: () => boolean) => {
    const reader = new EventReader(maxBytes, tooLarge, (text) => {
      try {
        deliver(text);
      } catch (error) {
        transport.onerror?.(error as Error);
      }
    });
    await readEvents(answer, reader);
    for (let resumes = 0; isOpen() && reader.lastId !== undefined && !stop.isOver;) {
      if (resumes++ >= MAX_RESUMES) return;
      const wait = reader.retryMs ?? RESUME_MS.first * 2 ** (resumes - 1);
      await pause(Math.min(wait, RESUME_MS.most), stop.signal);
      const headers = headersNow();
      headers['accept'] = 'text/event-stream';
      headers['last-event-id'] = reader.lastId;
      const response = await ask({ method: 'GET', headers, stop }).catch(() => undefined);
      if (response?.status === 200) await readEvents(response, reader);
      else await response?.body.cancel();
    }
  };

  return async (message, stop, isOpen) => {
    const { name, _meta: meta } = message.params as {
      readonly name: string;
      readonly _meta: Readonly<Record<string, unknown>>;
    };
    const isModern = meta[sdk.PROTOCOL_VERSION_META_KEY] !== undefined;
    const headers = isModern
      ? { ...headersOfPost(), 'mcp-method': message.method, 'mcp-name': headerValue(name) }
      : headersOfPost();
    const body = JSON.stringify(message);
    const response = await ask({ method: 'POST', headers, body, stop });
    const { status } = response;
    if (status < 200 || status > 299) {
      const said = (await whole(response, MAX_SAID, tooLarge)).toString();
      // In the newer era it is the answer.
      if (status === 400 && isModern && isErrorOf(said, message.id)) {
        deliver(said);
        return 'ended';
      }
      const text = status < 400 ? (redirectOf(response, url.href) ?? said) : said;
      const { statusText } = response;
      throw new sdk.SdkHttpError(
        sdk.SdkErrorCode.ClientHttpNotImplemented,
        `Error POSTing to endpoint: ${text}`,
        { status, statusText, text },
      );
    }
    const contentType = response.headers.get('content-type') ?? '';
    const kind = contentType.split(';', 1)[0]!.trim().toLowerCase();
    if (status !== 202 && kind === 'text/event-stream') {
      await follow(response, stop, isOpen);
    } else if (status !== 202 && kind === 'application/json') {
      deliver((await whole(response, maxBytes, tooLarge)).toString());
    } else {
      await response.body.cancel();
      if (status !== 202)
        throw new sdk.SdkError(
          sdk.SdkErrorCode.ClientHttpUnexpectedContent,
          `Unexpected content type: ${contentType === '' ? 'null' : contentType}`,
          { contentType },
        );
    }
    return 'ended';
  };
}

async function whole(answer: Answer, maxBytes: number, tooLarge: () => Error): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  await answer.read((chunk) => {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  });
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

const isErrorOf = (said: string, id: string | number): boolean =>
  said.startsWith('{') && said.includes('"error"') && answerId(said, said) === id;

/** Where a redirect, which is never followed, leads to; without what may be secret in it. */
function redirectOf({ headers }: Answer, from: string): string | undefined {
  const location = headers.get('location') ?? '';
  if (location === '' || !URL.canParse(location, from)) return undefined;
  const { protocol, host, pathname } = new URL(location, from);
  return `Redirect to ${protocol}//${host}${pathname} not followed; use that URL as the endpoint if it is the intended server (redirectPolicy: 'same-origin')`;
}

/** A name as a header. (MCP 2026-07-28, Streamable HTTP, "Value Encoding") */
function headerValue(name: string): string {
  const isSafe = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(name) && !name.startsWith('=?');
  return isSafe ? name : `=?base64?${Buffer.from(name).toString('base64')}?=`;
}
