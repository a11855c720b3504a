const NEWLINE = 10;

/** Reads server-sent events as their bytes come, in linear time: only a new chunk is searched for the ends of its lines. */
export class EventReader {
  readonly #maxBytes: number;
  readonly #tooLarge: () => Error;
  readonly #onMessage: (text: string) => void;
  #parts: Buffer[] = [];
  #data: string[] = [];
  #kind = '';
  /** Of the event so far. */
  #bytes = 0;
  /** Of the last event that had an id: from there the stream can be resumed. */
  lastId: string | undefined;
  /** How long the server wants one to wait before that, in milliseconds. */
  retryMs: number | undefined;
  /** Why reading was given up. */
  failure: Error | undefined;

  constructor(maxBytes: number, tooLarge: () => Error, onMessage: (text: string) => void) {
    this.#maxBytes = maxBytes;
    this.#tooLarge = tooLarge;
    this.#onMessage = onMessage;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#take(chunk.subarray(from, at));
      from = at + 1;
      const [first] = this.#parts;
      const line = (this.#parts.length === 1 ? first! : Buffer.concat(this.#parts)).toString();
      this.#parts = [];
      this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
  }

  #take(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > this.#maxBytes) {
      this.failure = this.#tooLarge();
      throw this.failure;
    }
    this.#parts.push(piece);
  }

  #line(line: string): void {
    if (line === '') {
      const text = this.#data.length === 1 ? this.#data[0]! : this.#data.join('\n');
      if (text !== '' && (this.#kind === '' || this.#kind === 'message')) this.#onMessage(text);
      this.#data = [];
      this.#kind = '';
      this.#bytes = 0;
      return;
    }
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const at = colon === -1 ? line.length : colon + (line.charCodeAt(colon + 1) === 32 ? 2 : 1);
    if (field === 'data') this.#data.push(line.slice(at));
    else if (field === 'event') this.#kind = line.slice(at);
    else if (field === 'id') this.lastId = line.slice(at);
    else if (field === 'retry' && /^\d+$/.test(line.slice(at)))
      this.retryMs = Number(line.slice(at));
  }
}
