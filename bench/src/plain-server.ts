import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PROGRAM = fileURLToPath(new URL('../servers/plain.mjs', import.meta.url));

/** A server that answers at once and from memory, in so many tools; every start of it is noted in the file `starts`. */
export function plainServer(
  of: {
    readonly tools?: number;
    readonly output?: boolean;
    readonly starts?: string;
    readonly id?: string;
    /** Milliseconds before it listens. */
    readonly wait?: number;
  } = {},
): { readonly command: string; readonly args: string[] } {
  const { tools = 1, output = false, starts, id = 'plain', wait = 0 } = of;
  const args = [PROGRAM, `--tools=${tools}`, `--id=${id}`, `--wait=${wait}`];
  if (output) args.push('--output');
  if (starts !== undefined) args.push(`--starts=${starts}`);
  return { command: process.execPath, args };
}

/** A file for the starts of servers. */
export class Starts {
  #folder = '';

  get file(): string {
    return join(this.#folder, 'starts');
  }

  async open(): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'patchbay-bench-'));
  }

  /** So many were started since it was opened. */
  async count(): Promise<number> {
    return (await readFile(this.file, 'utf8')).trim().split('\n').length;
  }

  close(): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true });
  }
}

/** Memory of every process below this one, in MB, by the process table. */
export async function childrenMegabytes(): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-axo', 'pid=,ppid=,rss=']);
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number, number]);
  const below = (parent: number): number =>
    rows
      .filter(([, ppid]) => ppid === parent)
      .reduce((sum, [pid, , rss]) => sum + rss + below(pid), 0);
  return below(process.pid) / 1024;
}

/** The least client there can be: a loop over the pipe, without any feature. */
export class FloorClient {
  readonly #child;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  readonly #ended: Promise<void>;
  #next = 0;

  constructor({ command, args }: { readonly command: string; readonly args: readonly string[] }) {
    // As little environment as the other clients hand on: Node reads certificates at its start where that says so.
    const env = { PATH: process.env['PATH'] };
    this.#child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'ignore'] });
    this.#ended = new Promise((resolve) => this.#child.once('exit', () => resolve()));
    let rest = '';
    this.#child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = chunk.split('\n');
      lines[0] = rest + lines[0]!;
      rest = lines.pop()!;
      for (const line of lines) this.#take(line);
    });
  }

  request(method: string, params: object = {}): Promise<unknown> {
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#write({ id, method, params });
    });
  }

  async initialize(): Promise<void> {
    const clientInfo = { name: 'floor', version: '1' };
    await this.request('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo,
    });
    this.#write({ method: 'notifications/initialized' });
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }

  #take(line: string): void {
    const { id, result } = JSON.parse(line) as { readonly id?: number; readonly result: unknown };
    if (id === undefined) return;
    this.#waiting.get(id)?.(result);
    this.#waiting.delete(id);
  }

  #write(message: object): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
}
