import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Disk } from '@patchbay/files';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'patchbay-disk-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe.each([
  ['that is quick', false],
  ['that is slow', true],
])('a disk %s', (_, slow) => {
  const disk = new Disk({ slow });

  it('gives the head of a file, whatever size it was thought to have', async () => {
    const file = join(folder, 'good.md');
    await writeFile(file, 'good');
    for (const size of [undefined, 0, 2, 3, 4, 5, 100]) {
      const head = (atLeast: number) => disk.head(file, atLeast, size);
      expect(await head(2)).toEqual({ bytes: Buffer.from('go'), complete: false });
      for (const atLeast of [4, 5, 4096])
        expect(await head(atLeast)).toEqual({ bytes: Buffer.from('good'), complete: true });
    }
    await truncate(file);
    expect(await disk.head(file, 16, 4)).toEqual({ bytes: Buffer.alloc(0), complete: true });
    await expect(disk.head(join(folder, 'none.md'), 16)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('tells what is in a folder and what is at a path, or that there is nothing', async () => {
    await writeFile(join(folder, 'some.md'), 'some');
    const names = (await disk.list(folder)).filter((entry) => entry.isFile());
    expect(names.map(({ name }) => name)).toContain('some.md');
    await expect((async () => disk.list(join(folder, 'none')))()).rejects.toMatchObject({
      code: 'ENOENT',
    });
    expect((await disk.stat(join(folder, 'some.md')))?.size).toBe(4n);
    for (const path of ['none', 'some.md/below', 'no\0path'])
      expect(await disk.stat(join(folder, path))).toBeUndefined();
  });

  it('tells what is at paths themselves, in their order, and where there is nothing', async () => {
    const [file, link, broken] = ['own.md', `link-${slow}`, `broken-${slow}`].map((name) =>
      join(folder, name),
    );
    await writeFile(file!, 'own');
    await symlink('own.md', link!);
    await symlink('nowhere', broken!);
    const none = join(folder, 'none');
    const found = await disk.lstats([link!, none, file!, broken!, `${file}/below`]);
    expect(found.map((one) => one?.isSymbolicLink())).toEqual([
      true,
      undefined,
      false,
      true,
      undefined,
    ]);
    expect(found[2]?.size).toBe(3n);
    expect((await disk.stat(link!))?.size).toBe(3n);
    expect(await disk.stat(broken!)).toBeUndefined();
  });

  it.skipIf(process.platform === 'win32')('does not wait for who writes to a pipe', async () => {
    const pipe = join(folder, `pipe-${slow}`);
    execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', pipe]);
    await expect(disk.head(pipe, 16)).rejects.toThrow('ESPIPE');
  });

  it('lets others go on while much is asked of it', async () => {
    const taken = { turns: 0 };
    const turn = setInterval(() => {
      if (++taken.turns === 3) clearInterval(turn);
    }, 0);
    // Without turns of others it would never end.
    while (taken.turns < 3) await disk.stat(folder);
    expect(taken.turns).toBe(3);
  });
});
