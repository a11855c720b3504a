const NEWLINE = 10;

/** Splits bytes into lines in linear time: only a new chunk is searched, and a line is put together once. */
export class LineReader {
  readonly #maxBytes: number;
  readonly #onLine: (line: string) => void;
  readonly #onTooLong: () => void;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(options: {
    readonly maxBytes: number;
    /** Called for every line that is not empty, without its end. */
    readonly onLine: (line: string) => void;
    /** Called once when a line grows beyond `maxBytes`; the rest of the line is dropped. */
    readonly onTooLong: () => void;
  }) {
    this.#maxBytes = options.maxBytes;
    this.#onLine = options.onLine;
    this.#onTooLong = options.onTooLong;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#take(chunk.subarray(from, at));
      from = at + 1;
      this.#finish();
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
  }

  #take(piece: Buffer): void {
    const before = this.#bytes;
    this.#bytes += piece.length;
    if (this.#bytes <= this.#maxBytes) {
      this.#parts.push(piece);
    } else if (before <= this.#maxBytes) {
      this.#parts = [];
      this.#onTooLong();
    }
  }

  #finish(): void {
    const [first] = this.#parts;
    const line = this.#parts.length > 1 ? Buffer.concat(this.#parts, this.#bytes) : first;
    const tooLong = this.#bytes > this.#maxBytes;
    this.#parts = [];
    this.#bytes = 0;
    if (line === undefined || tooLong) return;
    const text = line.toString('utf8').trim();
    if (text !== '') this.#onLine(text);
  }
}
