/** The last bytes of a stream, for error messages. Everything before them is dropped as it comes. */
export class Tail {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#chunks.length > 1 && this.#bytes - this.#chunks[0]!.length >= this.#maxBytes) {
      this.#bytes -= this.#chunks.shift()!.length;
    }
  }

  toString(): string {
    return Buffer.concat(this.#chunks).subarray(-this.#maxBytes).toString('utf8').trim();
  }
}
