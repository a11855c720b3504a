import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';

import { PatchbayError } from '@patchbay/protocols';

import { within } from '../pause.ts';
import { TOO_LARGE } from '../stand-in.ts';
import { answerId } from './answer-id.ts';
import { LineReader } from './line-reader.ts';
import { signalTree } from './process-tree.ts';
import { startChild } from './start-child.ts';
import { Tail } from './tail.ts';

/** What {@link StdioTransport} starts, and within which bounds. */
export interface StdioOptions {
  /** A program, looked up in the child's PATH. Never given to a shell. */
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Added to a minimal environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  /** Longest line that is read. Default 64 MiB. */
  readonly maxLineBytes?: number;
  /** How much of stderr is kept for error messages. Default 64 KiB. */
  readonly stderrTailBytes?: number;
  /** How long the server may take to end after its input ended, and after SIGTERM, each. Default 1,500 ms. */
  readonly graceMs?: number;
  /** Whether a server that exits at the first question is started once more, as an older one. Default true. */
  readonly respawnAtProbe?: boolean;
}

/** A JSON-RPC message, as far as a transport looks at it. */
export interface JsonRpcMessage {
  readonly jsonrpc: '2.0';
  readonly id?: string | number | null;
  readonly method?: string;
  readonly [field: string]: unknown;
}

const DEFAULTS = {
  maxLineBytes: 64 * 1024 * 1024,
  stderrTailBytes: 64 * 1024,
  graceMs: 1_500,
  respawnAtProbe: true,
};
/** After 'exit' the last answer may still be in the pipe: read until it is quiet for so long, or for so long in all. */
const AFTER_EXIT = { quietMs: 100, atMostMs: 1_000 };
/** How long the end of a server that closed its input is waited for. */
const CLOSED_INPUT_MS = 300;
/** How long what was killed may take to be gone: the system ends a large program piece by piece. */
const KILLED_MS = 1_000;
const PROBE = 'server/discover';
/** How much of a line that is no message is handed on, in characters. */
const SAMPLE = 2_000;

/**
 * A transport to an MCP server in a child process, for any client that takes MCP transports. What sets it apart:
 *
 * - the death of the server settles everything at once, also behind `npx` or `sh -c`: it acts on 'exit', not on 'close',
 *   which a grandchild can hold back;
 * - the whole process tree ends with it: end of input, SIGTERM, SIGKILL;
 * - stderr is always drained, its tail is in the error; lines are read in linear time;
 * - a server that exits at the `server/discover` probe of newer clients is started once more and told to be an older one.
 *
 * It has `pid` and `stderr`, by which the official client recognises a stdio transport.
 */
export class StdioTransport {
  onmessage?: ((message: never) => void) | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  /** A line that is no JSON-RPC message: a banner, a log. The beginning of it. */
  onnoise?: ((sample: string) => void) | undefined;

  /** A process was started: it is not known yet whether that succeeds. */
  onspawn?: ((child: ChildProcess) => void) | undefined;

  readonly #options: StdioOptions & typeof DEFAULTS;
  #child: ChildProcessWithoutNullStreams | undefined;
  #stderr: Tail;
  #state: 'new' | 'open' | 'closing' | 'closed' = 'new';
  #closing: Promise<void> | undefined;
  #lastData = 0;
  #afterExit: ReturnType<typeof setInterval> | undefined;
  /** The id of a probe that has not been answered; only until something else was sent. */
  #probe: JsonRpcMessage['id'];
  #sentOther = false;
  #respawned = false;
  /** How it ended by itself. */
  #ended: PatchbayError | undefined;
  /** Who waits for its end, or for its next start. */
  readonly #waiting: (() => void)[] = [];

  constructor(options: StdioOptions) {
    this.#options = { ...DEFAULTS, ...options };
    this.#stderr = new Tail(this.#options.stderrTailBytes);
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Nobody may read it but this class; the property tells clients that this is a stdio transport. */
  get stderr(): null {
    return null;
  }

  get stderrTail(): string {
    return this.#stderr.toString();
  }

  /** @throws PatchbayError `connect-failed` if the program cannot be started */
  async start(): Promise<void> {
    if (this.#state !== 'new')
      throw new PatchbayError('closed', 'A stdio transport is started once.');
    this.#state = 'open';
    try {
      await this.#spawn();
    } catch (error) {
      this.#state = 'closed';
      throw error;
    }
  }

  /** Resolves when the whole line is handed to the operating system; rejects when the server is gone. */
  send(message: JsonRpcMessage): Promise<void> {
    if (message.method === PROBE && !this.#sentOther) this.#probe = message.id;
    else this.#sentOther = true;
    const stdin = this.#child?.stdin;
    if (this.#state !== 'open' || stdin?.writable !== true) {
      return Promise.reject(
        new PatchbayError('connection-lost', 'The server is not running.', {
          details: { neverRan: true },
        }),
      );
    }
    const line = `${JSON.stringify(message)}\n`;
    this.#gather(stdin);
    // The callback also comes when the server dies; 'drain' would not.
    return new Promise((resolve, reject) => {
      stdin.write(line, (cause) => {
        if (cause == null) resolve();
        else this.#unwritten(cause).then(resolve, reject);
      });
    });
  }

  /** What is sent in one tick is written at once: many calls of a step are one write to the pipe. */
  #gather(stdin: Writable): void {
    if (stdin.writableCorked > 0) return;
    stdin.cork();
    process.nextTick(() => stdin.uncork());
  }

  /**
   * Ends the server and everything it started. Every caller waits for the end. `graceMs` as in {@link StdioOptions}; the
   * first caller's counts.
   */
  close(graceMs: number = this.#options.graceMs): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  /** Nothing could be written. Mostly the server has ended, which is seen a moment later, with what it said of it. */
  async #unwritten(cause: Error): Promise<void> {
    const wasRespawned = this.#respawned;
    const ended = new Promise<void>((resolve) => this.#waiting.push(resolve));
    await within(ended, CLOSED_INPUT_MS);
    // Started again: the question was answered for it.
    if (this.#respawned !== wasRespawned) return;
    const { message, details = {} } = this.#ended ?? { message: 'The server closed its input.' };
    throw new PatchbayError('connection-lost', message, {
      cause,
      details: { ...details, inputClosed: true },
    });
  }

  async #spawn(): Promise<void> {
    const { command, args, env, cwd, maxLineBytes } = this.#options;
    const child = await startChild({ command, args, env, cwd }, (started) => {
      this.#child = started;
      this.onspawn?.(started);
    });
    const stderr = new Tail(this.#options.stderrTailBytes);
    this.#stderr = stderr;
    const lines = new LineReader({
      maxBytes: maxLineBytes,
      onLine: (line) => this.#line(line),
      onTooLong: (head, tail) => this.#tooLong(answerId(head, tail)),
    });
    child.stdout.on('data', (chunk: Buffer) => {
      this.#lastData = Date.now();
      if (child === this.#child) lines.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('exit', (code, signal) => this.#exited(child, code, signal));
    if (child.exitCode !== null || child.signalCode !== null)
      this.#exited(child, child.exitCode, child.signalCode);
    if (this.#state !== 'open') signalTree(child, 'SIGKILL');
  }

  /** Ends the call whose answer it is; where that cannot be seen, the connection. */
  #tooLong(id: string | number | undefined): void {
    const { maxLineBytes } = this.#options;
    const message = `a message of the server is longer than ${maxLineBytes} bytes`;
    if (id !== undefined) {
      const data = { [TOO_LARGE]: maxLineBytes };
      this.#deliver({ jsonrpc: '2.0', id, error: { code: -32000, message, data } });
      return;
    }
    this.onerror?.(new PatchbayError('too-large', `${message}; the connection was closed.`));
    void this.close();
  }

  #line(line: string): void {
    let parsed: unknown;
    try {
      parsed = JSON.parse(line);
    } catch {
      this.onnoise?.(line.slice(0, SAMPLE));
      return;
    }
    // Servers of 2025-03-26 may send several messages in one line.
    for (const message of Array.isArray(parsed) ? parsed : [parsed]) {
      if (!isJsonRpc(message)) {
        this.onnoise?.(line.slice(0, SAMPLE));
        continue;
      }
      if (this.#probe !== undefined && message.id === this.#probe && message.method === undefined)
        this.#probe = undefined;
      this.#deliver(message);
    }
  }

  #deliver(message: JsonRpcMessage): void {
    try {
      (this.onmessage as ((message: JsonRpcMessage) => void) | undefined)?.(message);
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #exited(
    child: ChildProcessWithoutNullStreams,
    code: number | null,
    signal: NodeJS.Signals | null,
  ): void {
    if (child !== this.#child || this.#afterExit !== undefined || this.#state === 'closed') return;
    signalTree(child, 'SIGKILL'); // whatever a wrapper left behind
    if (this.#state === 'closing') return;
    if (
      this.#state === 'open' &&
      this.#probe !== undefined &&
      !this.#sentOther &&
      !this.#respawned &&
      this.#options.respawnAtProbe
    ) {
      this.#startAgain(this.#probe, code, signal);
      return;
    }
    const since = Date.now();
    let looks = 0;
    this.#afterExit = setInterval(() => {
      const now = Date.now();
      const ended = child.stdout.readableEnded && child.stderr.readableEnded;
      // Between two looks everything was read that was there at the first.
      const quiet = ++looks > 1 && now - Math.max(since, this.#lastData) >= AFTER_EXIT.quietMs;
      if (ended || quiet || now - since > AFTER_EXIT.atMostMs) this.#down(code, signal);
    }, 5);
  }

  /** It died of a question that older servers do not know: once more, and the question is answered for it. */
  #startAgain(id: JsonRpcMessage['id'], code: number | null, signal: NodeJS.Signals | null): void {
    this.#probe = undefined;
    this.#respawned = true;
    this.#tellWaiting();
    this.#spawn().then(
      () =>
        this.#deliver({
          jsonrpc: '2.0',
          id: id ?? null,
          error: { code: -32601, message: `the server exited at ${PROBE} and was started again` },
        }),
      () => this.#down(code, signal),
    );
  }

  #down(code: number | null, signal: NodeJS.Signals | null): void {
    clearInterval(this.#afterExit);
    if (this.#state === 'closed') return;
    const asked = this.#state === 'closing';
    this.#state = 'closed';
    const child = this.#child;
    for (const stream of [child?.stdin, child?.stdout, child?.stderr]) stream?.destroy();
    if (!asked) {
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      this.#ended = new PatchbayError('connection-lost', `The server ended ${how}.`, {
        details: { exitCode: code, signal },
      });
      this.onerror?.(this.#ended);
    }
    this.onclose?.();
    this.#tellWaiting();
  }

  #tellWaiting(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async #close(graceMs: number): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined || this.#state === 'closed' || this.#state === 'new') {
      this.#state = 'closed';
      return;
    }
    this.#state = 'closing';
    const gone = new Promise<void>((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) resolve();
      else child.once('exit', () => resolve());
    });
    child.stdin.end();
    if (!(await within(gone, graceMs))) {
      signalTree(child, 'SIGTERM');
      if (!(await within(gone, graceMs))) {
        signalTree(child, 'SIGKILL');
        await within(gone, KILLED_MS);
      }
    }
    signalTree(child, 'SIGKILL');
    await within(outputEnded(child), KILLED_MS);
    this.#down(child.exitCode, child.signalCode);
  }
}

/** A child's output is also that of what it started, and ends with the last of them. */
function outputEnded({ stdout, stderr }: ChildProcessWithoutNullStreams): Promise<unknown> {
  return Promise.allSettled([finished(stdout), finished(stderr)]);
}

function isJsonRpc(value: unknown): value is JsonRpcMessage {
  if (typeof value !== 'object' || value === null) return false;
  const { jsonrpc, method, result, error } = value as Record<string, unknown>;
  return (
    jsonrpc === '2.0' && (typeof method === 'string' || result !== undefined || error !== undefined)
  );
}
