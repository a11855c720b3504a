import type { Client, SubscriptionFilter } from '@modelcontextprotocol/client';

import { waitMs, type BackOff } from './back-off.ts';
import { pause } from './pause.ts';
import { isObject } from './wire-content.ts';

interface Listening {
  readonly signal: AbortSignal;
  /** The stream was lost and is there again: what changed meanwhile is not known. */
  readonly onGap: (method: string) => void;
  /** It cannot be had any more. */
  readonly onDeaf: () => void;
}

const BACK_OFF: BackOff = { attempts: 3, firstMs: 1_000, maxMs: 30_000 };
const ACKNOWLEDGE_MS = 30_000;
const LISTS = ['tools', 'prompts', 'resources'] as const;

/**
 * Servers of 2026-07-28 send notifications only over a stream that is asked for. The official client does not ask again
 * when it ended, and not at all after a connect with a known era.
 */
export async function keepListening(
  client: Client,
  { signal, onGap, onDeaf }: Listening,
): Promise<void> {
  const capabilities: Readonly<Record<string, unknown>> = client.getServerCapabilities() ?? {};
  const lists = LISTS.filter((list) => {
    const capability = capabilities[list];
    return isObject(capability) && capability['listChanged'] === true;
  });
  if (client.getProtocolEra() !== 'modern' || lists.length === 0) return;
  const filter = Object.fromEntries(
    lists.map((list) => [`${list}ListChanged`, true]),
  ) as SubscriptionFilter;
  for (let failures = 0, gap = false; failures < BACK_OFF.attempts; failures++, gap = true) {
    try {
      const stream = await client.listen(filter, { signal, timeout: ACKNOWLEDGE_MS });
      failures = 0;
      if (gap) for (const list of lists) onGap(`notifications/${list}/list_changed`);
      if ((await stream.closed) === 'local') return;
    } catch (error) {
      // An answer, though a refusal: the server has no such stream.
      if (typeof (error as { readonly code?: unknown }).code === 'number') return;
    }
    if (signal.aborted) return;
    try {
      await pause(waitMs(failures + 1, BACK_OFF, Math.random), signal);
    } catch {
      return;
    }
  }
  onDeaf();
}
