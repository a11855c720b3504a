import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import type { StdioServerConfig } from '@patchbay/protocols';

const RAW = fileURLToPath(new URL('fixtures/raw-server.mjs', import.meta.url));

/** A server without any SDK that misbehaves as told; it ends by itself after a minute. */
export function raw(options: Readonly<Record<string, unknown>> = {}): StdioServerConfig {
  return { command: process.execPath, args: [RAW, JSON.stringify({ lifeMs: 60_000, ...options })] };
}

/** The same behind a shell that stays in between, as `npx` does. */
export function behindShell(options: Readonly<Record<string, unknown>> = {}): StdioServerConfig {
  const { command, args = [] } = raw(options);
  const line = [command, ...args].map((word) => `'${word}'`).join(' ');
  return { command: 'sh', args: ['-c', `${line}; true`] };
}

/** Processes of a group that are still there. */
export function groupMembers(pgid: number): number {
  const table = execFileSync('ps', ['-eo', 'pgid=,stat=']).toString();
  return table
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([group, state]) => Number(group) === pgid && state?.startsWith('Z') === false).length;
}

/** Processes that a process started, and that are still there. */
export function childrenOf(parent: number): readonly string[] {
  const table = execFileSync('ps', ['-eo', 'ppid=,stat=,args=']).toString();
  return table
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(line))
    .filter((row) => Number(row?.[1]) === parent && row?.[2]?.startsWith('Z') === false)
    .map((row) => row![3]!)
    .filter((command) => !command.startsWith('ps '));
}
