import {
  changeSource,
  type Capability,
  type ChangeEvent,
  type ChangeObservable,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { expect, it } from 'vitest';

function observable(id: string, onAttach?: (attached: boolean) => void) {
  const source = changeSource(
    id,
    onAttach === undefined
      ? undefined
      : () => {
          onAttach(true);
          return () => onAttach(false);
        },
  );
  return {
    id,
    revision: source.revision,
    changes: source.subscribe,
    emit: source.emit,
  } satisfies Capability & ChangeObservable & { emit: unknown };
}

async function take(stream: AsyncIterable<ChangeEvent>, count: number): Promise<string[]> {
  const seen: string[] = [];
  for await (const { capability, kind } of stream) {
    seen.push(`${capability} ${kind}`);
    if (seen.length === count) break;
  }
  return seen;
}

it('merges what is there and what is registered later, and hears only its own scope', async () => {
  await using registry = new ExtensionRegistry();
  const [a, mine, theirs] = [observable('a'), observable('mine'), observable('theirs')];
  registry.register(a);
  const stream = registry.changes({ session: 's' });
  const seen = take(stream, 4);
  registry.register(mine, { session: 's' });
  registry.register(theirs, { session: 't' });
  await Promise.resolve();
  theirs.emit('tools_changed');
  a.emit('tools_changed');
  mine.emit('skills_changed');
  await registry.close({ session: 't' });
  await registry.close({ session: 's' });
  expect(await seen).toEqual([
    'mine registered',
    'a tools_changed',
    'mine skills_changed',
    'mine unregistered',
  ]);
});

it('hears whichever of one id is seen: the deeper one while it is there, then the other one again', async () => {
  await using registry = new ExtensionRegistry();
  const [everybody, own] = [observable('a'), observable('a')];
  registry.register(everybody);
  const seen = take(registry.changes({ session: 's' }), 4);
  const handle = registry.register(own, { session: 's' });
  everybody.emit('shadowed');
  own.emit('tools_changed');
  await new Promise(setImmediate);
  await handle.close();
  own.emit('gone');
  everybody.emit('skills_changed');
  expect(await seen).toEqual([
    'a registered',
    'a tools_changed',
    'a unregistered',
    'a skills_changed',
  ]);
});

it('hears parts only where what they are a part of is seen', async () => {
  await using registry = new ExtensionRegistry();
  const [first, second] = [observable('first'), observable('second')];
  registry.register({ id: 'whole', children: [first] });
  const seen = take(registry.changes({ session: 's' }), 6);
  const handle = registry.register({ id: 'whole', children: [second] }, { session: 's' });
  first.emit('shadowed');
  second.emit('tools_changed');
  await new Promise(setImmediate);
  await handle.close();
  first.emit('skills_changed');
  expect(await seen).toEqual([
    'whole registered',
    'second registered',
    'second tools_changed',
    'whole unregistered',
    'second unregistered',
    'first skills_changed',
  ]);
});

it('listens to a source only while somebody listens, and lets go of everything', async () => {
  await using registry = new ExtensionRegistry();
  let attached = 0;
  const source = observable('a', (on) => (attached += on ? 1 : -1));
  registry.register(source);
  await registry.view().compile();
  expect(attached).toBe(0);
  const streams = [registry.changes(), registry.view({ session: 's' }).changes()];
  const seen = streams.map((stream) => take(stream, 1));
  expect(attached).toBe(1);
  source.emit('tools_changed');
  expect(await Promise.all(seen)).toEqual([['a tools_changed'], ['a tools_changed']]);
  expect(attached).toBe(0);
});

it('coalesces for a slow reader without losing the last of each kind', async () => {
  await using registry = new ExtensionRegistry();
  const source = observable('a');
  registry.register(source);
  const stream = registry.changes();
  const reader = stream[Symbol.asyncIterator]();
  const first = reader.next();
  source.emit('tools_changed');
  await first;
  for (let i = 0; i < 10_000; i++) {
    source.emit('tools_changed');
    source.emit('resource_updated', `mcp://a/${i}`);
  }
  source.emit('status_changed');
  // Let the pump hand over: it reads one event per turn of the queue.
  const seen: ChangeEvent[] = [];
  while (seen.at(-1)?.kind !== 'status_changed')
    seen.push((await reader.next()).value as ChangeEvent);
  await reader.return?.();
  expect(seen.length).toBeLessThan(110);
  expect(seen.map(({ kind }) => kind)).toContain('tools_changed');
  expect(
    seen.some(({ kind, sourceUri }) => kind === 'resource_updated' && sourceUri === undefined),
  ).toBe(true);
});

it('survives a source whose stream fails', async () => {
  const problems: string[] = [];
  await using registry = new ExtensionRegistry({
    onProblem: ({ source }) => void problems.push(source),
  });
  registry.register({
    id: 'bad',
    revision: () => 1,
    async *changes() {
      yield* await Promise.reject<ChangeEvent[]>(new Error('stream broke'));
    },
  });
  const good = observable('good');
  registry.register(good);
  const seen = take(registry.changes(), 2);
  good.emit('tools_changed');
  // What the broken one would have told by now nobody knows: its readers look again.
  expect((await seen).toSorted()).toEqual(['bad status_changed', 'good tools_changed']);
  expect(problems).toEqual(['bad']);
});

it('ends with its scope, after what it still has to tell', async () => {
  await using registry = new ExtensionRegistry();
  registry.register({ id: 'mine' }, { session: 's' });
  const all = async (stream: AsyncIterable<ChangeEvent>) => await take(stream, Infinity);
  const session = all(registry.changes({ session: 's', agent: 'a' }));
  const pool = all(registry.changes());
  await registry.close({ session: 's' });
  expect(await session).toEqual(['mine unregistered']);
  registry.register({ id: 'late' });
  await registry.close();
  expect(await pool).toEqual(['late registered', 'late unregistered']);
});

it('ends a stream whose signal aborts', async () => {
  await using registry = new ExtensionRegistry();
  const stop = new AbortController();
  const seen = take(registry.changes({}, { signal: stop.signal }), 5);
  stop.abort();
  expect(await seen).toEqual([]);
});
