import { Stopper, stopBy, type Stop } from '@patchbay/protocols';
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
