import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { expand } from '../src/expand.ts';

const rows = JSON.parse(
  readFileSync(new URL('fixtures/claude-code-25563/expand.json', import.meta.url), 'utf8'),
) as readonly (readonly [string, Record<string, string>, string])[];

const values = (env: Record<string, string>, inputs: Record<string, string> = {}) => ({
  env,
  folder: '/srv/project',
  input: async (id: string) => inputs[id],
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
  it.each(rows)('claude-code-25563: %s with %j', async (text, env, expected) => {
    const known = DOCUMENTED[text] ?? { text: expected };
    expect(await expand(text, values(env))).toEqual(known);
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
    ['${workspaceFolder}/x', { text: '/srv/project/x' }],
    ['${workspaceFolderBasename}', { text: 'project' }],
    ['${env:workspaceFolder}', { missing: ['workspaceFolder'] }],
  ])('%s', async (text, expected) => {
    expect(await expand(text, values({ A: '1' }, { token: 'secret' }))).toEqual(expected);
  });

  it('ask for nothing that is not needed', async () => {
    const asked: string[] = [];
    const input = async (id: string) => (asked.push(id), 'answer');
    const given = { ...values({ A: '1' }), input };
    expect(await expand('${A:-${input:x}} ${B:-${input:y}}', given)).toEqual({ text: '1 answer' });
    expect(asked).toEqual(['y']);
  });

  it.each([
    ['{env:A} {env:B}', { missing: ['B'] }],
    ['{env:A}{env:A}', { text: '11' }],
    ['${A} {A} {env:}', { text: '${A} {A} {env:}' }],
    ['{file:./no-such-file}', { missing: ['the file ./no-such-file'] }],
    ['${env:A}', { text: '$1' }],
  ])('of OpenCode: %s', async (text, expected) => {
    expect(await expand(text, values({ A: '1' }), 'opencode')).toEqual(expected);
  });
});
