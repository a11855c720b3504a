import { AsyncResource } from 'node:async_hooks';
import type { IncomingHttpHeaders } from 'node:http';
import { createBrotliDecompress, createUnzip } from 'node:zlib';

import type { Stop } from '@patchbay/protocols';
import type { Dispatcher } from 'undici';

/** As much of a `Response` as is looked at, and its body as it comes. */
export interface Answer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: { get(name: string): string | null; has(name: string): boolean };
  /** Reads what little there may be, so that the socket can be used again. */
  readonly body: { cancel(): Promise<void> };
  /** Hands the body on until its end, once. What `take` throws ends it, and is what it fails with. */
  read(take: (chunk: Buffer) => void): Promise<void>;
}

/** How the body ended. */
interface End {
  readonly error?: unknown;
}

/** Bytes that are kept until somebody reads; then the socket waits. */
const MAX_KEPT = 65_536;
/** Bytes that are read only to use the socket again. */
const MAX_WASTED = 131_072;

/** An answer on its way, from the request to the end of its body; until then it is ended by `stop`. */
export class Incoming extends AsyncResource implements Dispatcher.DispatchHandler {
  readonly answer: Promise<Answer>;
  #start!: (answer: Answer) => void;
  #refuse!: (error: unknown) => void;
  readonly #letGo: (() => void) | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #encoding: string | null = null;
  #take: ((chunk: Buffer) => void) | undefined;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #end: End | undefined;
  #onEnd: ((end: End) => void) | undefined;

  constructor(stop: Stop) {
    // Whoever reads does so in the context of the call, not in that of the socket.
    super('PATCHBAY_ANSWER', { requireManualDestroy: true });
    this.answer = new Promise((resolve, reject) => {
      this.#start = resolve;
      this.#refuse = reject;
    });
    if (stop.isOver) this.#over({ error: broken(stop.reason) });
    else this.#letGo = stop.onEnd(() => this.#abort(broken(stop.reason)));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#end !== undefined) controller.abort(this.#end.error as Error);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText = '',
  ): void {
    if (status < 200) return;
    const encoding = text(headers['content-encoding']);
    this.#encoding = encoding === 'identity' ? null : encoding;
    this.#start({
      status,
      statusText,
      headers: {
        get: (name) => text(headers[name.toLowerCase()]),
        has: (name) => headers[name.toLowerCase()] !== undefined,
      },
      body: { cancel: () => this.#waste() },
      read: (take) => this.#read(take),
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#take !== undefined) return this.runInAsyncScope(() => this.#give(chunk));
    this.#kept.push(chunk);
    this.#keptBytes += chunk.length;
    if (this.#keptBytes > MAX_KEPT) controller.pause();
  }

  onResponseEnd(): void {
    this.#over({});
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#over({ error: broken(error) });
  }

  #read(take: (chunk: Buffer) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const onEnd = ({ error }: End) => (error === undefined ? resolve() : reject(error));
      const [onChunk, onRawEnd] =
        this.#encoding === null ? [take, onEnd] : this.#decoded(this.#encoding, take, onEnd);
      this.#take = onChunk;
      for (const chunk of this.#kept) this.#give(chunk);
      this.#kept = [];
      if (this.#end === undefined) this.#onEnd = onRawEnd;
      else onRawEnd(this.#end);
      if (this.#controller?.paused === true) this.#controller.resume();
    });
  }

  #waste(): Promise<void> {
    this.#encoding = null;
    let bytes = 0;
    const read = this.#read(({ length }) => {
      bytes += length;
      if (bytes > MAX_WASTED) throw new Error('This is more than a new socket costs.');
    });
    return read.catch(() => undefined);
  }

  /** What takes the bytes as they come and their end, for what takes them as they are meant. */
  #decoded(
    encoding: string,
    take: (chunk: Buffer) => void,
    onEnd: (end: End) => void,
  ): [(chunk: Buffer) => void, (end: End) => void] {
    const decoder = encoding === 'br' ? createBrotliDecompress() : createUnzip();
    const fail = (error: unknown) => {
      decoder.destroy();
      onEnd({ error });
      this.#abort(error);
    };
    decoder.on('error', (error) => fail(broken(error)));
    decoder.on('end', () => onEnd({}));
    decoder.on('data', (chunk: Buffer) => {
      try {
        take(chunk);
      } catch (error) {
        fail(error);
      }
    });
    const write = (chunk: Buffer) => {
      if (decoder.write(chunk)) return;
      this.#controller?.pause();
      decoder.once('drain', () => this.#controller?.resume());
    };
    return [write, ({ error }) => (error === undefined ? decoder.end() : fail(error))];
  }

  #give(chunk: Buffer): void {
    if (this.#end?.error !== undefined) return;
    try {
      this.#take?.(chunk);
    } catch (error) {
      this.#abort(error);
    }
  }

  #abort(error: unknown): void {
    this.#over({ error });
    this.#controller?.abort(error as Error);
  }

  #over(end: End): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#letGo?.();
    if (end.error !== undefined) this.#refuse(end.error);
    this.#onEnd?.(end);
  }
}

/** What the network says, as `fetch` says it. */
const broken = (cause: unknown): TypeError => new TypeError('fetch failed', { cause });

function text(value: string | readonly string[] | undefined): string | null {
  if (value === undefined) return null;
  return typeof value === 'string' ? value : value.join(', ');
}
