import { describe } from 'vitest';

import { FRAMEWORKS } from '../src/frameworks.ts';
import { taskFailsWithoutItsParts } from './task-parts.ts';

describe.each(Object.keys(FRAMEWORKS))('the task of the demo through %s', taskFailsWithoutItsParts);
