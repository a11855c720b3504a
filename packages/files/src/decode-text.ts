/** Bytes as text, and whether something had to be guessed. */
export interface DecodedText {
  readonly text: string;
  /** It was not UTF-8: decoded by its mark, or with replacement characters. */
  readonly guessed: boolean;
}

/** Reads UTF-8, and UTF-16 with a byte order mark. The mark is removed from the head, and only there. */
export function decodeText(bytes: Uint8Array): DecodedText {
  const utf16 =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? 'utf-16le'
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? 'utf-16be'
        : undefined;
  const text = new TextDecoder(utf16 ?? 'utf-8', { ignoreBOM: true }).decode(bytes);
  return {
    text: text.replace(/^\uFEFF+/, ''),
    guessed: utf16 !== undefined || text.includes('\uFFFD'),
  };
}
