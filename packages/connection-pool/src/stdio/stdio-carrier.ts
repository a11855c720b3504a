import type { ChildProcess } from 'node:child_process';

import type { StdioServerConfig } from '@patchbay/protocols';

import type { Carrier, CarrierEvents } from '../carrier.ts';
import { postOver } from '../own/own-calls.ts';
import { ExitGuard } from './exit-guard.ts';
import { StdioTransport } from './stdio-transport.ts';

/** What a server that closed its input may still say. */
const LAST_ANSWERS_MS = 2_000;
/** A server with which no connection came about has nothing to put in order. */
const ABANDON_MS = 200;

/** A server in a child process. It is guarded from the moment that it is started. */
export function stdioCarrier(
  { command, args, env, cwd }: StdioServerConfig,
  options: {
    readonly maxLineBytes: number;
    readonly respawn: boolean;
    readonly children: { guard?: ExitGuard };
  },
  events: CarrierEvents,
): Carrier {
  const transport = new StdioTransport({
    command,
    args,
    env,
    cwd,
    maxLineBytes: options.maxLineBytes,
    respawnAtProbe: options.respawn,
  });
  transport.onnoise = events.onNoise;
  const guard = (options.children.guard ??= new ExitGuard());
  const children: ChildProcess[] = [];
  transport.onspawn = (child) => {
    children.push(child);
    guard.add(child);
  };
  const carried = transport as Carrier['transport'];
  return {
    transport: carried,
    own: { post: postOver(carried), hasStreams: false },
    get pid() {
      return transport.pid ?? undefined;
    },
    get stderrTail() {
      return transport.stderrTail;
    },
    lastAnswersMs: LAST_ANSWERS_MS,
    close: async ({ abandon } = {}) => {
      await transport.close(abandon === true ? ABANDON_MS : undefined);
      for (const child of children) guard.delete(child);
    },
  };
}
