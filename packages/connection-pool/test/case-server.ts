import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { StdioServerConfig } from '@patchbay/protocols';

/** A line of the log that the server of a public report writes. */
export interface LogLine {
  readonly event: string;
  readonly pid: number;
  readonly t: number;
  readonly [fact: string]: unknown;
}

/** Where the files of a public report are. */
export function caseFile(path: string): string {
  return fileURLToPath(new URL(`fixtures/${path}`, import.meta.url));
}

/** The server of a public report, with a log that ends with it. */
export function caseServer(path: string, env: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'patchbay-case-'));
  const file = join(folder, 'log');
  const config: StdioServerConfig = {
    command: process.execPath,
    args: [caseFile(path)],
    env: { ...env, FIXTURE_LOG: file },
  };
  const log = (): readonly LogLine[] => {
    try {
      const lines = readFileSync(file, 'utf8').trim().split('\n');
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as LogLine);
    } catch {
      return [];
    }
  };
  return {
    config,
    folder,
    log,
    /** The lines of one kind. */
    logged: (event: string) => log().filter((line) => line.event === event),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Whether a process is there; one that only waits to be collected is not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

export const textOf = ({ content }: { readonly content: readonly unknown[] }): string =>
  (content[0] as { text: string }).text;
