import { constants } from 'node:fs';
import { open, realpath, type FileHandle } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';

import { PatchbayError } from '@patchbay/protocols';

export interface ConfinedOptions {
  /** Largest file that is read. Default 1 MiB. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

const MAX_BYTES = 1024 * 1024;
/** An editor replaces files; nobody replaces one this often in so short a time. */
const MAX_ATTEMPTS = 200;

/**
 * Reads a file below a folder, and nothing else: whatever `path` says, by `..`, by an absolute path or by a link, the
 * file that was opened must lie in the real folder. A link that stays inside is fine.
 * @throws PatchbayError `outside-root`, `not-found`, `too-large`
 */
export async function readConfined(
  root: string,
  path: string,
  options: ConfinedOptions = {},
): Promise<Buffer> {
  const { maxBytes = MAX_BYTES, signal } = options;
  signal?.throwIfAborted();
  const target = resolve(root, path);
  if (path.includes('\0') || isAbsolute(path) || !isBelow(resolve(root), target))
    throw outside(path);
  for (let attempt = 1; ; attempt++) {
    const handle = await openFile(target, path);
    try {
      // The check is made on what is open, so a link that is exchanged meanwhile gives nothing away.
      if (!(await isInside(root, target, handle, path))) {
        if (attempt < MAX_ATTEMPTS) continue;
        throw outside(path);
      }
      const { size } = await handle.stat();
      if (size > maxBytes) {
        throw new PatchbayError(
          'too-large',
          `${path} is larger than ${maxBytes} bytes and was not read.`,
          {
            details: { size, maxBytes },
          },
        );
      }
      return await handle.readFile(signal === undefined ? {} : { signal });
    } finally {
      await handle.close();
    }
  }
}

async function openFile(target: string, path: string): Promise<FileHandle> {
  try {
    const handle = await open(target, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    if ((await handle.stat()).isFile()) return handle;
    await handle.close();
  } catch (cause) {
    throw notFound(path, cause);
  }
  throw notFound(path);
}

/** Whether the open file is the one that lies inside at this path; not if it was replaced since it was opened. */
async function isInside(
  root: string,
  target: string,
  handle: FileHandle,
  path: string,
): Promise<boolean> {
  const real = await realpath(target).catch((cause: unknown) => {
    throw notFound(path, cause);
  });
  if (!isBelow(await realpath(root), real)) throw outside(path);
  const [opened, inside] = [await handle.stat({ bigint: true }), await statOf(real)];
  return opened.ino === inside?.ino && opened.dev === inside.dev;
}

async function statOf(
  path: string,
): Promise<{ readonly ino: bigint; readonly dev: bigint } | undefined> {
  const handle = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0)).catch(
    () => undefined,
  );
  try {
    return await handle?.stat({ bigint: true });
  } finally {
    await handle?.close();
  }
}

/** Whether `path` is `folder` or lies in it. Both absolute, without `..`. */
export function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

function outside(path: string): PatchbayError {
  return new PatchbayError(
    'outside-root',
    `${JSON.stringify(path)} lies outside of the folder; only files in it can be read.`,
    {
      details: { path },
    },
  );
}

function notFound(path: string, cause?: unknown): PatchbayError {
  return new PatchbayError('not-found', `There is no file ${JSON.stringify(path)} here.`, {
    details: { path },
    ...(cause === undefined ? {} : { cause }),
  });
}
