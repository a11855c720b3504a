import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { caseFile } from './case-server.ts';

/** The HTTP server of a public report, in a process of its own; it ends by itself after a minute. */
export async function startHttpCase(path: string, env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [caseFile(path)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], ...env },
    timeout: 60_000,
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { url } = JSON.parse(line) as { readonly url: string };
  const ask = async (what: string): Promise<unknown> =>
    (await fetch(new URL(what, url), what === '/__restart' ? { method: 'POST' } : {})).json();
  return {
    url,
    /** What it saw. */
    stats: () =>
      ask('/__stats') as Promise<{
        readonly requests: readonly HttpLogLine[];
        readonly sessions?: number;
      }>,
    restart: () => ask('/__restart'),
    kill: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

export interface HttpLogLine {
  readonly http?: string;
  readonly rpc?: string;
  readonly sid?: string;
  readonly t?: number;
  readonly [fact: string]: unknown;
}
