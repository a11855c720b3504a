/**
 * SHA-256 (FIPS 180-4) of UTF-8 text, as lower-case hex. Synchronous and without a Node built-in: tool names are made
 * from it, in constructors, on every runtime. For short texts; file digests belong to `node:crypto`.
 */
export function sha256Hex(text: string): string {
  const input = new TextEncoder().encode(text);
  const padded = new Uint8Array(Math.ceil((input.length + 9) / 64) * 64);
  padded.set(input);
  padded[input.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(input.length / 0x2000_0000));
  view.setUint32(padded.length - 4, (input.length << 3) >>> 0);

  const { k, initial } = constants();
  const state = Uint32Array.from(initial);
  const w = new Uint32Array(64);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) {
        w[i] = view.getUint32(at + i * 4);
        continue;
      }
      const a = w[i - 15]!;
      const b = w[i - 2]!;
      const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
      const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
      w[i] = w[i - 16]! + s0 + w[i - 7]! + s1;
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + k[i]! + w[i]!) >>> 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) >>> 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) >>> 0, c, b, a, (t1 + t2) >>> 0];
    }
    for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = state[i]! + value;
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, '0')).join('');
}

const rotate = (value: number, by: number): number => (value >>> by) | (value << (32 - by));

/** The round constants are the fractional parts of the cube and square roots of the first primes, as the standard says. */
function constants(): { k: Uint32Array; initial: Uint32Array } {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p !== 0)) primes.push(n);
  return {
    k: Uint32Array.from(primes, (p) => fraction(Math.cbrt(p))),
    initial: Uint32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p))),
  };
}

function fraction(value: number): number {
  return (value - Math.floor(value)) * 2 ** 32;
}
