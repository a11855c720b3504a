const NEWLINE = 10;
/** How much of both ends of a line that is too long is kept, in bytes: enough to see whose answer it is. */
const ENDS = 256;

/** Splits bytes into lines in linear time: only a new chunk is searched, and a line is put together once. */
export class LineReader {
  readonly #maxBytes: number;
  readonly #onLine: (line: string) => void;
  readonly #onTooLong: (head: string, tail: string) => void;
  #parts: Buffer[] = [];
  #bytes = 0;
  #head = '';
  #tail = '';

  constructor(options: {
    readonly maxBytes: number;
    /** Called for every line that is not empty, without its end. */
    readonly onLine: (line: string) => void;
    /** Called for every line beyond `maxBytes`, with its two ends; what is between them was dropped as it came. */
    readonly onTooLong: (head: string, tail: string) => void;
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
      return;
    }
    if (before <= this.#maxBytes) {
      const all = Buffer.concat([...this.#parts, piece]);
      this.#parts = [];
      this.#head = all.toString('latin1', 0, ENDS);
      this.#tail = all.toString('latin1', Math.max(0, all.length - ENDS));
    } else {
      this.#tail = (this.#tail + piece.toString('latin1', Math.max(0, piece.length - ENDS))).slice(
        -ENDS,
      );
    }
  }

  #finish(): void {
    const [first] = this.#parts;
    const line = this.#parts.length > 1 ? Buffer.concat(this.#parts, this.#bytes) : first;
    const tooLong = this.#bytes > this.#maxBytes;
    this.#parts = [];
    this.#bytes = 0;
    if (tooLong) {
      this.#onTooLong(this.#head, this.#tail);
      return;
    }
    const text = line?.toString('utf8').trim() ?? '';
    if (text !== '') this.#onLine(text);
  }
}
