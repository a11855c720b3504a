import { describe, expect, it } from 'vitest';

import { answerId } from '../src/stdio/answer-id.ts';
import { LineReader } from '../src/stdio/line-reader.ts';

function read(maxBytes: number, chunks: readonly string[]) {
  const heard: string[] = [];
  const reader = new LineReader({
    maxBytes,
    onLine: (line) => void heard.push(line),
    onTooLong: (head, tail) => void heard.push(`too long: ${head}…${tail}`),
  });
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  return heard;
}

describe('lines', () => {
  it.each([
    ['in one chunk', ['one\ntwo\n']],
    ['cut anywhere', ['o', 'ne\r\nt', 'wo', '\n', '\n']],
  ])('%s', (_name, chunks) => {
    expect(read(100, chunks)).toEqual(['one', 'two']);
  });

  it('cut within a character', () => {
    const bytes = Buffer.from('ü\n');
    const heard: string[] = [];
    const reader = new LineReader({
      maxBytes: 10,
      onLine: (line) => void heard.push(line),
      onTooLong: () => undefined,
    });
    for (const byte of bytes) reader.push(Buffer.of(byte));
    expect(heard).toEqual(['ü']);
  });

  it('that are too long are dropped but for their ends; the next one counts', () => {
    expect(read(4, ['abc', 'de', 'fg', '\nok\n'])).toEqual(['too long: abcde…abcdefg', 'ok']);
    expect(read(4, ['abcde\nok\n'])).toEqual(['too long: abcde…abcde', 'ok']);
  });
});

describe('whose answer a long line is', () => {
  const both = (text: string) => answerId(text.slice(0, 40), text.slice(-40));
  const long = 'x'.repeat(100);

  it.each([
    [{ jsonrpc: '2.0', id: 7, result: { content: long } }, 7],
    [{ id: 'a"b', jsonrpc: '2.0', result: long }, 'a"b'],
    [{ result: { content: [long] }, jsonrpc: '2.0', id: 8 }, 8],
    [{ result: long, id: 9, jsonrpc: '2.0' }, 9],
  ])('shows at one end (%#)', (message, id) => {
    expect(both(JSON.stringify(message))).toBe(id);
  });

  it.each([
    ['a notification', { jsonrpc: '2.0', method: 'x', params: { data: long } }],
    ['an id within the result', { jsonrpc: '2.0', result: { long, jsonrpc: '2.0', id: 8 } }],
    ['text that looks like an end', { jsonrpc: '2.0', result: `${long},"jsonrpc":"2.0","id":8}` }],
    ['a request of the server', { jsonrpc: '2.0', id: 5, method: 'x', params: long }],
  ])('does not show in %s', (_name, message) => {
    expect(both(JSON.stringify(message))).toBeUndefined();
  });
});
