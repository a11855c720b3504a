import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

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

interface HttpLogLine {
  readonly http?: string;
  readonly rpc?: string;
  readonly sid?: string;
  readonly t?: number;
  readonly [fact: string]: unknown;
}

/** Runs a program to its end. */
export function runProgram(...args: readonly string[]) {
  return promisify(execFile)(process.execPath, args, { timeout: 15_000 });
}

/** A server that speaks only HTTP+SSE of 2024-11-05, in a process of its own. */
export async function startOldSse() {
  const require = createRequire(import.meta.url);
  const folder = dirname(require.resolve('@modelcontextprotocol/server-everything/package.json'));
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { readonly port: number };
  probe.close();
  const child = spawn(process.execPath, [join(folder, 'dist/index.js'), 'sse'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'], PORT: String(port) },
    timeout: 60_000,
  });
  const url = `http://127.0.0.1:${port}/sse`;
  for await (const line of createInterface({ input: child.stderr }))
    if (line.includes(String(port))) break;
  child.stderr.resume();
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { url, kill, [Symbol.asyncDispose]: kill };
}
