import { describe, expect, it } from 'vitest';

import { FRAMEWORKS } from '../src/frameworks.ts';
import { missed, viewOf } from './task-parts.ts';

describe.each(Object.keys(FRAMEWORKS))('the task of the demo through %s', (framework) => {
  it('is done as the skill says', async () => {
    expect(await missed(framework, viewOf)).toEqual([]);
  });
});
