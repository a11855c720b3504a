import { Stopper, stopBy, withSignal, type Stop } from '@patchbay/protocols';
import { expect, it } from 'vitest';

/** Both kinds, each with what ends it. */
const kinds = (): readonly (readonly [string, Stop, (reason: unknown) => void])[] => {
  const stopper = new Stopper();
  const controller = new AbortController();
  return [
    ['one of its own', stopper, (reason) => stopper.end(reason)],
    ['a signal', stopBy(controller.signal), (reason) => controller.abort(reason)],
  ];
};

it.each(kinds())('%s tells everybody once who has not let go, with its reason', (_, stop, end) => {
  const heard: unknown[] = [];
  stop.onEnd((reason) => heard.push(['a', reason]));
  const letGo = stop.onEnd((reason) => heard.push(['b', reason]));
  letGo();
  expect(stop.isOver).toBe(false);
  end('enough');
  end('again');
  expect(heard).toEqual([['a', 'enough']]);
  expect([stop.isOver, stop.reason]).toEqual([true, 'enough']);
});

it.each(kinds())('%s that is over tells who comes late at once', (_, stop, end) => {
  end('enough');
  const heard: unknown[] = [];
  stop.onEnd((reason) => heard.push(reason));
  expect(heard).toEqual(['enough']);
});

it.each(kinds())('%s has a signal, the same one before and after its end', (_, stop, end) => {
  const { signal } = stop;
  expect(signal.aborted).toBe(false);
  end('enough');
  expect([signal.aborted, signal.reason]).toEqual([true, 'enough']);
  expect(stop.signal).toBe(signal);
});

it('makes a signal for who asks for one when it is over', () => {
  const stop = new Stopper();
  stop.end('enough');
  expect([stop.signal.aborted, stop.signal.reason]).toEqual([true, 'enough']);
});

const ORDERS = [
  [0],
  [1],
  [2],
  [0, 1],
  [1, 0],
  [0, 2],
  [2, 0],
  [1, 2],
  [2, 1],
  [0, 1, 2],
  [2, 1, 0],
  [1, 1],
];

it.each(kinds().flatMap(([name]) => ORDERS.map((order) => [name, order] as const)))(
  '%s forgets who lets go, in whatever order: %j',
  (name, order) => {
    const [, stop, end] = kinds().find(([kind]) => kind === name)!;
    const heard: number[] = [];
    const letGo = [0, 1, 2].map((n) => stop.onEnd(() => heard.push(n)));
    for (const n of order) letGo[n]!();
    stop.onEnd(() => heard.push(3));
    end('enough');
    expect(heard).toEqual([...[0, 1, 2].filter((n) => !order.includes(n)), 3]);
  },
);

it.each(kinds())('%s does not tell who is let go of by another at the end', (_, stop, end) => {
  const heard: string[] = [];
  stop.onEnd(() => {
    heard.push('first');
    letGo();
  });
  const letGo = stop.onEnd(() => heard.push('second'));
  stop.onEnd(() => heard.push('third'));
  end('enough');
  expect(heard).toEqual(['first', 'third']);
});

it('makes a reason once, for the first who asks', () => {
  let made = 0;
  const stopper = new Stopper();
  stopper.endBy(() => `reason ${++made}`);
  expect([stopper.isOver, made]).toEqual([true, 0]);
  stopper.end('another');
  stopper.endBy(() => 'a third');
  const told: unknown[] = [];
  stopper.onEnd((reason) => told.push(reason));
  expect([...told, stopper.reason, stopper.signal.reason]).toEqual(Array(3).fill('reason 1'));
});

it('makes a reason at once where somebody listens', () => {
  const stopper = new Stopper();
  const told: unknown[] = [];
  stopper.onEnd((reason) => told.push(reason));
  const { signal } = stopper;
  stopper.endBy(() => 'over');
  expect([...told, signal.reason]).toEqual(['over', 'over']);
});

it('gives what has a stop its signal, made where it is read, and to a copy too', () => {
  const stop = new Stopper();
  let read = 0;
  const counted: Stop = {
    isOver: false,
    reason: undefined,
    onEnd: () => () => undefined,
    get signal() {
      read++;
      return stop.signal;
    },
  };
  const context = withSignal({ stop: counted, name: 'echo' });
  expect([Object.keys(context), read]).toEqual([['stop', 'name', 'signal'], 0]);
  const copy = { ...context, name: 'other' };
  expect([copy.signal, copy.name, read]).toEqual([stop.signal, 'other', 1]);
});
