import {
  CircularCompositionError,
  missingMethods,
  PatchbayError,
  problemFrom,
  toPatchbayError,
} from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

describe('PatchbayError', () => {
  it('is recognised across copies of the package', () => {
    const foreign = Object.assign(
      Object.create({ [Symbol.for('patchbay.error')]: true }) as object,
      { code: 'timeout' },
    );
    expect(PatchbayError.isInstance(foreign)).toBe(true);
    expect(PatchbayError.isInstance(new PatchbayError('timeout', 'late'))).toBe(true);
    expect(PatchbayError.isInstance(new Error('late'))).toBe(false);
    expect(PatchbayError.isInstance(undefined)).toBe(false);
  });

  it('keeps code, cause, source and details', () => {
    const cause = new Error('ECONNREFUSED');
    const error = new PatchbayError('connect-failed', 'no', {
      cause,
      source: 'github',
      details: { exitCode: 3 },
    });
    expect(error).toMatchObject({
      name: 'PatchbayError',
      code: 'connect-failed',
      cause,
      source: 'github',
    });
    expect(error.details).toEqual({ exitCode: 3 });
    expect('cause' in new PatchbayError('timeout', 'late')).toBe(false);
  });

  it('wraps what was thrown once, and says what failed', () => {
    const error = new PatchbayError('timeout', 'late');
    expect(toPatchbayError(error, 'internal')).toBe(error);
    expect(toPatchbayError('text', 'source-failed', { what: 'x failed' })).toMatchObject({
      code: 'source-failed',
      message: 'x failed: text',
      cause: 'text',
    });
  });

  it('names the whole circle of a capability that contains itself', () => {
    const error = new CircularCompositionError(['a', 'b', 'a']);
    expect(error).toMatchObject({ name: 'CircularCompositionError', code: 'circular-composition' });
    expect(error.message).toContain('a > b > a');
  });
});

describe('a problem', () => {
  it('takes over what an error says, and keeps its cause out of what is printed', () => {
    const cause = new Error('secret inside');
    const error = new PatchbayError('unavailable', 'down', {
      cause,
      details: { retryAt: '2026-01-01T00:00:00.000Z', file: 'a.md', line: 3 },
    });
    const problem = problemFrom('github', error, { since: '2025-12-31T00:00:00.000Z' });
    expect(problem).toEqual({
      source: 'github',
      code: 'unavailable',
      message: 'down',
      severity: 'error',
      since: '2025-12-31T00:00:00.000Z',
      retryAt: '2026-01-01T00:00:00.000Z',
      file: 'a.md',
      line: 3,
    });
    expect(problem.cause).toBe(cause);
    expect(JSON.stringify(problem)).not.toContain('secret');
  });
});

describe('missingMethods', () => {
  it('tells what a capability owes to the protocols that it begins', () => {
    const capability = {
      id: 'x',
      readResource: async () => [],
      changes: () => [],
      revision: () => 1,
    };
    expect(missingMethods(capability)).toEqual([
      { protocol: 'ResourceProvider', method: 'listResources' },
      { protocol: 'ResourceProvider', method: 'resourceExists' },
    ]);
  });
});
