import { describe, expect, it } from 'vitest';

import { FRAMEWORKS } from '../src/frameworks.ts';
import { missed, taskFailsWithoutItsParts, viewOf } from './task-parts.ts';

const frameworks = Object.keys(FRAMEWORKS);

describe.each(frameworks)('the task of the demo through %s', (framework) => {
  it('is done as the skill says', async () => {
    expect(await missed(framework, viewOf)).toEqual([]);
  });
});

describe.each(frameworks.slice(0, 1))('the task of the demo through %s', taskFailsWithoutItsParts);
