import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { expand, inputsIn } from '../src/expand.ts';

const rows = JSON.parse(
  readFileSync(new URL('fixtures/claude-code-25563/expand.json', import.meta.url), 'utf8'),
) as readonly (readonly [string, Record<string, string>, string])[];

const values = (env: Record<string, string>, inputs: Record<string, string> = {}) => ({
  env,
  input: (id: string) => inputs[id],
});

/** What the report leaves to the documentation, as ours says it. */
const DOCUMENTED: Readonly<Record<string, object>> = {
  '${V-d}': { text: '${V-d}' },
  $HOME: { text: '$HOME' },
  '%USERPROFILE%': { text: '%USERPROFILE%' },
  '${UNCLOSED': { text: '${UNCLOSED' },
  '${MISSING}': { missing: ['MISSING'] },
};

describe('placeholders', () => {
  it.each(rows)('claude-code-25563: %s with %j', (text, env, expected) => {
    const known = DOCUMENTED[text] ?? { text: expected };
    expect(expand(text, values(env))).toEqual(known);
  });

  it.each([
    ['${env:A}', { text: '1' }],
    ['${env:A:-x}', { text: '1' }],
    ['${NONE:-${A}${ALSO_NONE:-z}}', { text: '1z' }],
    ['${A:-${NONE}}', { text: '1' }],
    ['${NONE:-${NEITHER}}', { missing: ['NEITHER'] }],
    ['${NONE} ${NEITHER}', { missing: ['NONE', 'NEITHER'] }],
    ['$${A} costs $$', { text: '${A} costs $$' }],
    ['${input:token}', { text: 'secret' }],
    ['${input:other}', { missing: ['input:other'] }],
    ['${A:-never closed', { text: '${A:-never closed' }],
    ['${constructor}', { missing: ['constructor'] }],
    ['${}', { text: '${}' }],
  ])('%s', (text, expected) => {
    expect(expand(text, values({ A: '1' }, { token: 'secret' }))).toEqual(expected);
  });

  it('are found where they ask for an input', () => {
    expect(inputsIn('Bearer ${input:a} ${input:b-c}')).toEqual(['a', 'b-c']);
  });
});
