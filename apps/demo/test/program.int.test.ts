import { existsSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { buildProgram, foldersIn, type Program } from './program.ts';

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

describe('the demo as a program', () => {
  it('shows its points, says how many checks held, and leaves nothing', async () => {
    const { code, output } = await program.run([]);
    expect(output).not.toContain('NOT OK');
    expect(output.trim().split('\n').at(-1)).toMatch(/^(\d+) of \1 checks held$/);
    expect(code).toBe(0);
    for (const point of [
      '1. A project',
      '2. What is plugged in',
      '3. The same task',
      '4. Two customers',
      '5. Changes',
      '6. Slash commands',
      '7. The end',
    ]) {
      expect(output).toContain(point);
    }
    expect(output).not.toContain('\u001B');
    expect(foldersIn(output).filter(existsSync)).toEqual([]);
  });

  it('says that a real model needs a key, and which models there are', async () => {
    expect(await program.run(['--model', 'anthropic/claude-sonnet-4-5'])).toMatchObject({
      code: 2,
      output: expect.stringContaining('ANTHROPIC_API_KEY'),
    });
    expect(await program.run(['--model', 'other/x'])).toMatchObject({
      code: 2,
      output: expect.stringContaining('openai/<model>'),
    });
  });

  it('chats, with slash commands', async () => {
    const input = '/exlpain x\nPlease write the release notes of this project.\n\n';
    const { code, output } = await program.run(['chat'], { input });
    expect(output).toContain('Did you mean /explain');
    expect(output).toContain('The release notes are in RELEASE_NOTES.md.');
    expect(code).toBe(0);
  });
});
