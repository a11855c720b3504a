import { describe, expect, it } from 'vitest';

import { suiteTests, type Ended, type Suite } from '../src/index.ts';

interface Subject extends Ended {
  readonly works: boolean;
}

const suite: Suite<Subject> = {
  contract: 'Thing',
  requirements: [
    {
      name: 'works',
      check: async ({ works }) => {
        if (!works) throw new Error('It does not work.');
      },
    },
    { name: 'exists', check: async () => undefined },
  ],
};
const working = async () => ({ works: true });
const broken = async () => ({ works: false });

describe('the tests of a suite', () => {
  it('are one per requirement, on a fresh subject each, which is ended also after a failure', async () => {
    let made = 0;
    let ended = 0;
    const create = async () => ({
      works: ++made === 0,
      [Symbol.asyncDispose]: async () => void ended++,
    });
    const tests = suiteTests(suite, { create });
    expect(tests.map(({ name }) => name)).toEqual(['works', 'exists']);
    await expect(tests[0]?.run()).rejects.toThrow('It does not work.');
    await tests[1]?.run();
    expect([made, ended]).toEqual([2, 2]);
  });

  it('pass for a known failure, and say why it is known', async () => {
    const skip = [{ test: 'works', reason: 'out of order' }];
    const [test] = suiteTests(suite, { create: broken, skip });
    expect(test?.name).toBe('works [known not to: out of order]');
    await test?.run();
  });

  it('fail for a known failure that is none any more', async () => {
    const skip = [{ test: 'works', reason: 'out of order' }];
    const [test] = suiteTests(suite, { create: working, skip });
    await expect(test?.run()).rejects.toThrow('remove the skip');
  });

  it('fail for a subject that cannot be made or ended, whatever is known to fail', async () => {
    const skip = [{ test: 'works', reason: 'out of order' }];
    const error = new Error('no power');
    const makes = [
      async () => Promise.reject(error),
      async () => ({ works: false, [Symbol.asyncDispose]: () => Promise.reject(error) }),
    ];
    for (const create of makes) {
      await expect(suiteTests(suite, { create, skip })[0]?.run()).rejects.toBe(error);
    }
  });

  it.each([
    ['unknown', [{ test: 'flies', reason: 'no wings' }], /no requirement "flies"[^]*- works/],
    ['unreasoned', [{ test: 'works', reason: ' ' }], /Say why/],
    [
      'repeated',
      [
        { test: 'works', reason: 'a' },
        { test: 'works', reason: 'b' },
      ],
      /skipped twice/,
    ],
  ])('refuse a skip that is %s', (_, skip, message) => {
    expect(() => suiteTests(suite, { create: working, skip })).toThrow(message);
  });
});
