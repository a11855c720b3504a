import { describe, expect, it } from 'vitest';

import { EventReader } from '../src/own/event-reader.ts';

const STREAM =
  ': hello\r\nid: 7\r\ndata: {"a":"ü"}\r\n\r\nevent: other\ndata: no\n\nretry: 20\ndata: one\ndata:two\n\nid\ndata\n\n';

describe('A reader of server-sent events', () => {
  it('reads the same, wherever the stream is cut', () => {
    const bytes = Buffer.from(STREAM);
    for (let size = 1; size <= bytes.length; size++) {
      const said: string[] = [];
      const reader = new EventReader(
        100,
        () => new Error('too large'),
        (text) => said.push(text),
      );
      for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
      expect(said).toEqual(['{"a":"ü"}', 'one\ntwo']);
      expect(reader).toMatchObject({ lastId: '', retryMs: 20, failure: undefined });
    }
  });

  it('gives up an event that is too large, and counts each event by itself', () => {
    const said: string[] = [];
    const reader = new EventReader(
      12,
      () => new Error('too large'),
      (text) => said.push(text),
    );
    reader.push(Buffer.from('data: 1234\n\n'.repeat(3)));
    expect(said).toHaveLength(3);
    expect(() => reader.push(Buffer.from('data: 1234567'))).toThrow('too large');
  });
});
