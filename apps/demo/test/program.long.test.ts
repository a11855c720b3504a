import { existsSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { buildProgram, foldersIn, isAlive, pidsIn, type Program } from './program.ts';

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

  it.each(['the next step sees', 'Two customers', 'Changes'])(
    'ends cleanly when it is interrupted at "%s"',
    async (point) => {
      let interrupted = false;
      const { code, output } = await program.run([], {
        on: (soFar, child) => {
          if (interrupted || !soFar.includes(point)) return;
          interrupted = true;
          child.kill('SIGINT');
        },
      });
      expect(code).toBe(130);
      expect(pidsIn(output).filter(isAlive)).toEqual([]);
      expect(foldersIn(output).filter(existsSync)).toEqual([]);
    },
  );

  it('ends cleanly when nobody reads its output any more', async () => {
    const { code, output } = await program.run([], {
      on: (soFar, { stdout }) => {
        if (soFar.includes('calls files__read_text_file')) stdout.destroy();
      },
    });
    expect(code).toBe(141);
    expect(pidsIn(output).length).toBeGreaterThan(3);
    expect(pidsIn(output).filter(isAlive)).toEqual([]);
    expect(foldersIn(output)).not.toEqual([]);
    expect(foldersIn(output).filter(existsSync)).toEqual([]);
  });
});
