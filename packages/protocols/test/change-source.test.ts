import { changeSource, type ChangeEvent } from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

async function read(stream: AsyncIterable<ChangeEvent>, count: number): Promise<ChangeEvent[]> {
  const events: ChangeEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

describe('changeSource', () => {
  it('gives every listener every kind, from the moment it asked', async () => {
    const { emit, subscribe } = changeSource('a');
    const { signal } = new AbortController();
    emit('tools_changed');
    const streams = [subscribe(signal), subscribe(signal)];
    emit('skills_changed');
    emit('resource_updated', 'mcp://a/b');
    const expected = [
      { capability: 'a', kind: 'skills_changed' },
      { capability: 'a', kind: 'resource_updated', sourceUri: 'mcp://a/b' },
    ];
    expect(await Promise.all(streams.map((stream) => read(stream, 2)))).toEqual([
      expected,
      expected,
    ]);
  });

  it('moves its revision with every change, and only then', () => {
    const { emit, revision } = changeSource('a');
    const before = revision();
    expect(revision()).toBe(before);
    emit('tools_changed');
    expect(revision()).not.toBe(before);
  });

  it('is attached while somebody listens, and cannot vouch for anything while nobody does', async () => {
    const log: string[] = [];
    const { revision, subscribe } = changeSource('a', () => {
      log.push('attached');
      return () => log.push('detached');
    });
    expect(revision()).not.toBe(revision());
    const [one, two] = [new AbortController(), new AbortController()];
    const before = revision();
    const streams = [read(subscribe(one.signal), 1), read(subscribe(two.signal), 1)];
    expect(revision()).not.toBe(before);
    expect(revision()).toBe(revision());
    one.abort();
    expect(log).toEqual(['attached']);
    two.abort();
    expect(await Promise.all(streams)).toEqual([[], []]);
    expect(log).toEqual(['attached', 'detached']);
  });

  it('does not attach for a listener that is already gone', () => {
    let attached = false;
    const { subscribe } = changeSource('a', () => void (attached = true));
    subscribe(AbortSignal.abort());
    expect(attached).toBe(false);
  });
});
