import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { isBelow, readConfined } from '@patchbay/files';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let base: string;
let root: string;

beforeAll(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-files-')));
  root = join(base, 'ok');
  await mkdir(join(root, 'refs'), { recursive: true });
  await mkdir(join(base, 'ok-too'));
  await writeFile(join(base, 'secret.txt'), 'secret');
  await writeFile(join(base, 'ok-too/secret.txt'), 'secret');
  await writeFile(join(root, 'refs/good.md'), 'good');
  await symlink('refs/good.md', join(root, 'inside.md'));
  await symlink('../secret.txt', join(root, 'link.txt'));
  await symlink('..', join(root, 'linkdir'));
  await symlink(root, join(base, 'alias'));
});
afterAll(() => rm(base, { recursive: true, force: true }));

describe('a confined read', () => {
  it.each(['refs/good.md', './refs/../refs/good.md', 'inside.md'])('reads %s', async (path) => {
    expect(String(await readConfined(root, path))).toBe('good');
    expect(String(await readConfined(join(base, 'alias'), path))).toBe('good');
  });

  it.each([
    '../secret.txt',
    '..%2fsecret.txt',
    '/etc/hostname',
    'a/../../secret.txt',
    '..\\secret.txt',
    'link.txt',
    'linkdir/secret.txt',
    '../ok-too/secret.txt',
    'file:///etc/hostname',
    'good\0.md',
    'refs',
    'none.md',
    '',
    '.',
  ])('kirocrew-4777: does not give %j', async (path) => {
    await expect(readConfined(root, path)).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:outside-root|not-found)$/),
    });
  });

  it('is bounded in size and can be given up', async () => {
    await expect(readConfined(root, 'refs/good.md', { maxBytes: 3 })).rejects.toMatchObject({
      code: 'too-large',
    });
    await expect(
      readConfined(root, 'refs/good.md', { signal: AbortSignal.abort() }),
    ).rejects.toThrow();
  });

  it('knows what lies in a folder', () => {
    expect(isBelow('/a', '/a/b') && isBelow('/a', '/a') && isBelow('/a', '/a/..b')).toBe(true);
    expect(isBelow('/a', '/ab') || isBelow('/a', '/') || isBelow('/a/b', '/a')).toBe(false);
  });
});
