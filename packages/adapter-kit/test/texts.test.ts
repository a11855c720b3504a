import { PatchbayError } from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

import { errorText, instructionText } from '../src/index.ts';

describe('what a model reads of an error', () => {
  it.each([
    [
      new PatchbayError('invalid-arguments', 'no', {
        details: { tool: 't__x', violations: ['a: missing', 'b: wrong'] },
      }),
      'Error: Invalid arguments for t__x:\n- a: missing\n- b: wrong\nCorrect the arguments and call the tool again.',
    ],
    [
      new PatchbayError('outcome-unknown', 'The connection was lost.'),
      'Error: The connection was lost.\nIt may have run, or may not. Find out what is the case before you call it again.',
    ],
    [
      new PatchbayError('tool-unavailable', 'The tool "x" is not available.'),
      'Error: The tool "x" is not available.',
    ],
    [
      new PatchbayError('approval-denied', 'Refused.'),
      'Error: Refused.\nDo not try it again; go on without it, or ask the user.',
    ],
    [
      new PatchbayError('timeout', 'Too slow.'),
      'Error: Too slow.\nIt took too long and was given up. It may still have had an effect.',
    ],
    [
      new PatchbayError('aborted', 'Stopped.'),
      'Error: Stopped.\nIt was cancelled. It may have had an effect all the same.',
    ],
    [new Error('plain'), 'Error: plain'],
    ['thrown text', 'Error: thrown text'],
    [undefined, 'Error: The tool failed without saying why.'],
    [new Error(''), 'Error: The tool failed without saying why.'],
  ])('%s', (error, text) => {
    expect(errorText(error)).toBe(text);
  });

  it('has no stack, no cause and no credentials', () => {
    const cause = new Error('cause');
    const error = new PatchbayError(
      'source-failed',
      'fetch https://me:pw@host/?api_key=k1&x=2 with Bearer abcdef123 failed\n    at run (/srv/app.js:1:2)\nsee log',
      { cause },
    );
    expect(errorText(error)).toBe(
      'Error: fetch https://***@host/?api_key=***&x=2 with Bearer *** failed\nsee log',
    );
  });

  it('is cut where it is long, without half a character', () => {
    const text = errorText(new Error('😀'.repeat(5000)));
    expect(text.length).toBeLessThan(2100);
    expect(text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
  });
});

describe('instructions', () => {
  it('are two texts: what stays first, in order, without empty blocks', () => {
    const block = (kind: 'static' | 'dynamic', text: string) => ({ source: 's', kind, text });
    expect(
      instructionText([
        block('static', 'a\n'),
        block('dynamic', 'b'),
        block('static', '  '),
        block('static', 'c'),
      ]),
    ).toEqual({
      static: 'a\n\nc',
      dynamic: 'b',
    });
    expect(instructionText([])).toEqual({ static: '', dynamic: '' });
  });
});
