import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { buildProgram, type Program } from './program.ts';

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

describe('the demo as a program', () => {
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
