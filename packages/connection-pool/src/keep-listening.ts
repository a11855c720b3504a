import type { Client, SubscriptionFilter } from '@modelcontextprotocol/client';

import { waitMs, type BackOff } from './back-off.ts';
import { pause } from './pause.ts';
import { isObject } from './wire-content.ts';

interface Listening {
  readonly signal: AbortSignal;
  /** It is there, for the first time. */
  readonly onOpen?: () => void;
  /** The stream was lost and is there again: what changed meanwhile is not known. */
  readonly onGap: () => void;
  /** It cannot be had any more. */
  readonly onDeaf: () => void;
}

const BACK_OFF: BackOff = { attempts: 3, firstMs: 1_000, maxMs: 30_000 };
const ACKNOWLEDGE_MS = 30_000;
/** A stream that ends sooner is asked for again at growing distances. */
const LASTING_MS = 10_000;
const LISTS = ['tools', 'prompts', 'resources'] as const;

/** The lists that a server says may change. */
export function changingLists(client: Client): readonly string[] {
  const capabilities: Readonly<Record<string, unknown>> = client.getServerCapabilities() ?? {};
  return LISTS.filter((list) => {
    const capability = capabilities[list];
    return isObject(capability) && capability['listChanged'] === true;
  });
}

/** Asks a server of 2026-07-28 to tell when its lists change. An older one tells without being asked. */
export async function listenForLists(client: Client, listening: Listening): Promise<void> {
  const lists = changingLists(client);
  if (client.getProtocolEra() !== 'modern' || lists.length === 0) return;
  const filter = Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true]));
  await keepListening(client, filter, listening);
}

/**
 * Servers of 2026-07-28 send notifications only over a stream that is asked for. The official client does not ask again
 * when it ended, and not at all after a connect with a known era. Resolves when it is over, with why it never was there.
 */
export async function keepListening(
  client: Client,
  filter: SubscriptionFilter,
  { signal, onOpen, onGap, onDeaf }: Listening,
): Promise<unknown> {
  let wasOpen = false;
  let last: unknown;
  for (let failures = 0, short = 0; failures < BACK_OFF.attempts;) {
    const since = performance.now();
    try {
      const stream = await client.listen(filter, { signal, timeout: ACKNOWLEDGE_MS });
      if (wasOpen) onGap();
      else onOpen?.();
      wasOpen = true;
      failures = 0;
      if ((await stream.closed) === 'local') return undefined;
      short = performance.now() - since < LASTING_MS ? short + 1 : 0;
    } catch (error) {
      // An answer, though a refusal: the server has no such stream.
      last = error;
      if (typeof (error as { readonly code?: unknown }).code === 'number') return error;
      failures++;
    }
    if (signal.aborted) return last;
    try {
      await pause(waitMs(failures + short, BACK_OFF, Math.random), signal);
    } catch {
      return last;
    }
  }
  if (wasOpen) onDeaf();
  return last;
}
