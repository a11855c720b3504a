import { describe, expect, it } from 'vitest';

import type { Arm, Case } from '../src/case.ts';
import { measure } from '../src/measure.ts';
import { summarize } from '../src/statistics.ts';

const limits = { timeMs: 0, minRounds: 3, spread: 0.1, leadMs: 0 };
const work = (arms: readonly Arm[], rest: Partial<Case> = {}): Case => ({
  name: 'a case',
  unit: 'ms',
  arms,
  goals: [],
  warmUp: 0,
  ...rest,
});

/** An arm whose runs cost what the list says, again from its start when it ends. */
function arm(name: string, costs: readonly number[], log: string[] = []): Arm {
  let runs = 0;
  return {
    name,
    setup: async () => void log.push(`setup ${name}`),
    run: async () => {
      log.push(name);
      return { value: costs[runs++ % costs.length]!, cpu: 1 };
    },
    teardown: async () => void log.push(`teardown ${name}`),
  };
}

describe('a case', () => {
  it('runs its arms there and back, and takes them down in reverse order', async () => {
    const log: string[] = [];
    const arms = ['a', 'b', 'c'].map((name) => arm(name, [1], log));
    await measure(work(arms), { ...limits, minRounds: 2 });
    expect(log.join(' ')).toBe(
      'setup a setup b setup c a b c c b a a b c c b a teardown c teardown b teardown a',
    );
  });

  it('throws the first runs away', async () => {
    const { arms } = await measure(work([arm('a', [900, 900, 2, 2, 2, 2, 2, 2])], { warmUp: 2 }), {
      ...limits,
    });
    expect(arms[0]?.value).toEqual({ median: 2, spread: 0, runs: 3 });
  });

  it('goes on until its ratios hold still', async () => {
    const wild = [1, 1, 9, 9, 5, 5, ...Array.from({ length: 40 }, () => 2)];
    const { arms, ratios } = await measure(work([arm('a', wild), arm('b', [1])]), {
      ...limits,
      timeMs: 10_000,
    });
    expect(arms[0]!.value.runs).toBeGreaterThan(limits.minRounds);
    expect(ratios[0]?.ratio.spread).toBeLessThan(limits.spread);
  });

  it('ends at its time limit when they do not', async () => {
    const { arms } = await measure(work([arm('a', [1, 1, 9, 9]), arm('b', [1])]), limits);
    expect(arms[0]?.value.runs).toBe(limits.minRounds);
  });

  it('compares round by round, and says which goals are met', async () => {
    const { goals, met } = await measure(
      work([arm('ours', [2]), arm('theirs', [10])], {
        goals: [
          { arm: 'ours', against: 'theirs', of: 'value', atMost: 0.5 },
          { arm: 'ours', of: 'value', atMost: 1 },
        ],
      }),
      limits,
    );
    expect(goals.map(({ measured }) => measured)).toEqual([0.2, 2]);
    expect(met).toBe(false);
  });

  it('measures a fact once', async () => {
    const log: string[] = [];
    await measure(work([arm('a', [1], log), arm('b', [1], log)], { once: true }), limits);
    expect(log.filter((entry) => entry.length === 1)).toEqual(['a', 'b']);
  });

  it('is worth nothing when its arms did different work', async () => {
    const arms = [1, 2].map((answer) => ({
      ...arm(`a${answer}`, [1]),
      answer: async () => answer,
    }));
    await expect(measure(work(arms), limits)).rejects.toThrow('a2 and a1 did different work');
  });

  it('takes every arm down that was set up, also after a failure', async () => {
    const log: string[] = [];
    const broken = { ...arm('b', [1], log), setup: () => Promise.reject(new Error('no server')) };
    await expect(measure(work([arm('a', [1], log), broken]), limits)).rejects.toThrow('no server');
    expect(log).toEqual(['setup a', 'teardown b', 'teardown a']);
  });

  it('uses the clocks of its own process when an arm reports no cost', async () => {
    const quiet: Arm = { name: 'a', run: async () => undefined };
    const { arms } = await measure(work([quiet]), limits);
    expect(arms[0]!.value.median).toBeGreaterThan(0);
    expect(arms[0]!.cpu.median).toBeGreaterThanOrEqual(0);
  });
});

it('a summary is the median, and the width of the middle half', () => {
  expect(summarize([4, 1, 3, 2, 5])).toEqual({ median: 3, spread: 2 / 3, runs: 5 });
  expect(summarize([7])).toEqual({ median: 7, spread: 0, runs: 1 });
});
