import type { Client, RequestOptions, Tool } from '@modelcontextprotocol/client';
import type { ServerInfo } from '@patchbay/protocols';

import type { LinkRequest } from './link.ts';
import { MAX_TIMER_MS } from './pause.ts';
import { isObject } from './wire-content.ts';

const kept = (value: unknown) => ({ value });

/**
 * A result as it came: what is used of it is checked where it is used. Version 2 of the SDK takes a Standard Schema,
 * version 1 something that parses as Zod does.
 */
const UNCHECKED = {
  '~standard': { version: 1 as const, vendor: 'patchbay', validate: kept },
  parse: (value: unknown) => value,
  safeParse: (data: unknown) => ({ success: true, data }),
  safeParseAsync: async (data: unknown) => ({ success: true, data }),
};

/** Sends a request over a client of the official SDK, version 1 or 2. */
export async function send(
  client: Client,
  method: string,
  params: Readonly<Record<string, unknown>>,
  { stop, tool, onProgress }: LinkRequest,
): Promise<unknown> {
  // The client has timers too; ours decide. A progress token is always sent, so that a server can show that it is alive.
  const options: RequestOptions = {
    signal: stop.signal,
    timeout: MAX_TIMER_MS,
    onprogress: ({ progress, total, message }) =>
      onProgress({
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      }),
  };
  if (tool === undefined)
    return whole(await client.request({ method, params: { ...params } }, UNCHECKED, options));
  const { name, inputSchema } = tool;
  const toolDefinition = { name, inputSchema } as Tool;
  return whole(await client.callTool({ ...params, name }, { ...options, toolDefinition }));
}

/** Under this key of `_meta` an answer is carried past the schemas of the official client. */
const WHOLE = 'patchbay/whole-answer';
/** What all of its schemas let through. */
const STAND_IN = {
  resultType: 'complete',
  tools: [],
  prompts: [],
  resources: [],
  resourceTemplates: [],
  contents: [],
  content: [],
  messages: [],
  completion: { values: [] },
  ttlMs: 0,
  cacheScope: 'private',
};

/**
 * Where a connection is of 2026-07-28, the official client validates the answers to lists and calls, whatever schema it is
 * given: one bad tool would cost the whole list, one kind of content that it does not know the whole result. So answers
 * are carried past it. One that does not say what it is, is a whole one (MCP 2026-07-28, "Multi Round-Trip Requests");
 * `onUnmarked`: as those of older servers are.
 */
export function carryAnswers(client: Client, onUnmarked: () => void): void {
  const { transport } = client;
  const take = transport?.onmessage;
  if (transport === undefined || take === undefined || client.getProtocolEra() !== 'modern') return;
  transport.onmessage = (message, extra) => {
    const result: unknown = 'result' in message ? message.result : undefined;
    // Other ids than numbers are not of requests that are sent here.
    if (!('result' in message) || typeof message.id !== 'number' || !isObject(result)) {
      take(message, extra);
      return;
    }
    const { resultType = 'complete' } = result;
    if (result['resultType'] === undefined) onUnmarked();
    const carried = { ...message, result: { ...STAND_IN, _meta: { [WHOLE]: result } } };
    take(resultType === 'complete' ? carried : message, extra);
  };
}

/** The answer itself, if it was carried past the client. */
function whole(answer: unknown): unknown {
  const meta = isObject(answer) ? answer['_meta'] : undefined;
  return isObject(meta) && WHOLE in meta ? meta[WHOLE] : answer;
}

/**
 * Hears every notification that has no handler of its own. A handler that somebody else installed goes on hearing.
 * Returns what ends it.
 */
export function hearNotifications(
  client: Client,
  hear: (method: string, params: unknown) => void,
): () => void {
  const before = client.fallbackNotificationHandler;
  const ours: typeof before = async (notification) => {
    hear(notification.method, notification.params);
    await before?.(notification);
  };
  client.fallbackNotificationHandler = ours;
  return () => {
    if (client.fallbackNotificationHandler !== ours) return;
    if (before === undefined) delete client.fallbackNotificationHandler;
    else client.fallbackNotificationHandler = before;
  };
}

export function serverInfo(client: Client): ServerInfo {
  const version = client.getServerVersion();
  const instructions = client.getInstructions?.();
  const era = client.getProtocolEra?.();
  const protocolVersion = client.getNegotiatedProtocolVersion?.();
  const capabilities: unknown = client.getServerCapabilities();
  return {
    ...(version === undefined ? {} : { name: version.name, version: version.version }),
    ...(protocolVersion === undefined ? {} : { protocolVersion }),
    ...(era === undefined ? {} : { era }),
    ...(instructions === undefined ? {} : { instructions }),
    capabilities: isObject(capabilities) ? capabilities : {},
  };
}
