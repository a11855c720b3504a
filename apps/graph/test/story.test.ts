import { expect, it } from 'vitest';

import { story } from '../src/story.ts';

it('the graph looks up, asks a person before it pays, and goes on in another process', async () => {
  const told: string[] = [];
  expect(await story((line) => told.push(line))).toEqual([42]);
  expect(told).toEqual([
    expect.stringMatching(/waits for a person: .*Pay 42\?/),
    'Paid so far: 0',
    'Another process went on: It is paid.',
    'Paid: 42',
  ]);
});
