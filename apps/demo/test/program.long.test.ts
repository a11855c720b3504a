import { existsSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { buildProgram, foldersIn, isAlive, pidsIn, type Program } from './program.ts';

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

describe('the demo as a program', () => {
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
