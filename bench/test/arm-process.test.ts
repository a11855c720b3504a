import { fileURLToPath } from 'node:url';

import { describe, expect, it, onTestFinished } from 'vitest';

import { ArmProcess } from '../src/arm-process.ts';

const PROGRAM = fileURLToPath(new URL('fixtures/arm-program.mjs', import.meta.url));

function started(wish: 'answers' | 'fails' | 'dies'): ArmProcess {
  const arm = new ArmProcess('theirs', PROGRAM, [wish]);
  onTestFinished(() => arm.end());
  return arm;
}

describe('an arm in a process of its own', () => {
  it('is asked step by step, and tells what a run cost', async () => {
    const arm = started('answers');
    await arm.setup();
    expect(await arm.run()).toEqual({ value: 3, cpu: 1 });
    await arm.teardown();
    await arm.end();
  });

  it('says which arm failed, and in what', async () => {
    await expect(started('fails').run()).rejects.toThrow('theirs, run: no server');
  });

  it('is not waited for when its process has ended', async () => {
    const arm = started('dies');
    await expect(arm.setup()).rejects.toThrow('theirs, setup: its process has ended with 7.');
    await expect(arm.teardown()).rejects.toThrow('theirs, teardown: its process has ended with 7.');
  });
});
