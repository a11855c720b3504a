import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it, vi } from 'vitest';

import { blocksOf, readmes } from '../../scripts/readme-blocks.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const blocks = readmes(root)
  .flatMap((file) => blocksOf(root, file))
  .filter(({ run }) => run);

it.each(blocks.map((block) => [`${block.file}:${block.line}`, block.code] as const))(
  'the program at %s runs',
  async (_, code) => {
    const folder = await mkdtemp(join(root, 'docs/.test-'));
    const said = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    try {
      const file = join(folder, 'program.ts');
      await writeFile(file, code);
      await expect(import(file)).resolves.toBeDefined(); // it throws where it is wrong
    } finally {
      said.mockRestore();
      await rm(folder, { recursive: true, force: true });
    }
  },
);
