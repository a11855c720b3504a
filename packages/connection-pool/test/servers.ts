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

/** A server in a few lines: `on(message)` answers; `answer(id, result)` and `say(anything)` write. */
export function smallServer(on: string, more: Partial<StdioServerConfig> = {}): StdioServerConfig {
  const script = `
    const say = (one) => process.stdout.write(JSON.stringify(one) + '\\n');
    const answer = (id, result) => say({ jsonrpc: '2.0', id, result });
    const text = (text) => ({ content: [{ type: 'text', text }] });
    const hello = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } };
    const on = ${on};
    let rest = '';
    process.stdin.on('data', (chunk) => {
      rest += chunk;
      for (let at; (at = rest.indexOf('\\n')) !== -1; rest = rest.slice(at + 1)) {
        const message = JSON.parse(rest.slice(0, at));
        if (message.method === 'initialize') answer(message.id, hello);
        else on(message);
      }
    });
    process.stdin.on('end', () => process.exit(0));`;
  return { command: process.execPath, args: ['-e', script], ...more };
}
/** Of a {@link smallServer}: what it does not know. */
export const REFUSE = `say({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } })`;
