import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { expect, it } from 'vitest';

import { changed, GUIDE, stepsOf } from '../scripts/guide-steps.mjs';
import { root } from './workspace.ts';

/** What the runner says about itself would reach the tests that are started below. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_ENV|TEST$)/u.test(name)),
);

it('who follows the guide in a fresh clone has a capability package that passes every check', () => {
  const work = realpathSync(mkdtempSync(join(tmpdir(), 'patchbay-guide-')));
  const clone = join(work, 'patchbay');
  try {
    execFileSync('git', ['clone', '-q', root, clone]);
    const steps = stepsOf(readFileSync(join(clone, GUIDE), 'utf8'));
    expect(steps.map(({ kind }) => kind)).toContain('run');
    for (const step of steps) {
      if (step.kind === 'run') {
        execFileSync('bash', ['-euc', step.text], { cwd: clone, env, encoding: 'utf8' });
        continue;
      }
      const path = join(clone, step.file);
      mkdirSync(dirname(path), { recursive: true });
      const before = step.kind === 'change' ? readFileSync(path, 'utf8') : '';
      writeFileSync(path, step.kind === 'change' ? changed(before, step.text) : step.text);
    }
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`A step of ${GUIDE} failed.\n${stdout}\n${stderr}`, { cause: error });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});
