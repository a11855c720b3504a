import { IdleTimer } from '@patchbay/protocols';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

it('counts from the last use, not from the first', () => {
  const over = vi.fn();
  const timer = new IdleTimer(100, () => true, over);
  timer.touch();
  vi.advanceTimersByTime(60);
  timer.touch();
  vi.advanceTimersByTime(99);
  expect(over).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(over).toHaveBeenCalledOnce();
});

it('does not count while something is under way, and counts again after it', () => {
  const over = vi.fn();
  let idle = false;
  const timer = new IdleTimer(100, () => idle, over);
  timer.touch();
  vi.advanceTimersByTime(500);
  expect(over).not.toHaveBeenCalled();
  idle = true;
  timer.touch();
  vi.advanceTimersByTime(100);
  expect(over).toHaveBeenCalledOnce();
});

it.each([
  ['that was stopped', 100, true],
  ['without a limit', Infinity, false],
])('one %s ends nothing, and leaves no timer', (_, idleMs, stops) => {
  const over = vi.fn();
  const timer = new IdleTimer(idleMs, () => true, over);
  timer.touch();
  if (stops) timer.stop();
  timer.touch();
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(1_000_000);
  expect(over).not.toHaveBeenCalled();
});
