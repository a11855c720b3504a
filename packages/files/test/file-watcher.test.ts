import { EventEmitter } from 'node:events';
import { watch, type FSWatcher, type WatchListener } from 'node:fs';
import {
  appendFile,
  mkdir,
  mkdtemp,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { FileWatcher, type FileChange, type FileWatcherOptions } from '@patchbay/files';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';

import { lookAt } from './folder-look.ts';

let base: string;
let root: string;
let close: (() => void)[];

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-watch-')));
  root = join(base, 'root');
  close = [];
});
afterEach(async () => {
  for (const one of close) one();
  await rm(base, { recursive: true, force: true });
});

/** A watcher of `root`, and the batches that it announces, one after the other. */
async function watching(options: Partial<FileWatcherOptions> = {}) {
  const batches: (readonly string[])[] = [];
  const waiting: ((batch: readonly string[]) => void)[] = [];
  const looks: (readonly string[] | undefined)[] = [];
  const watcher = new FileWatcher({
    source: 'mine',
    debounceMs: 20,
    look: (fired) => {
      looks.push(fired?.map((path) => relative(base, path)));
      return lookAt(root);
    },
    onChange: (changes: readonly FileChange[]) => {
      const batch = changes.map(({ kind, path }) => `${kind} ${relative(root, path)}`).toSorted();
      const first = waiting.shift();
      if (first === undefined) batches.push(batch);
      else first(batch);
    },
    ...options,
  });
  close.push(() => watcher.close());
  await watcher.start();
  const next = async (): Promise<readonly string[]> =>
    batches.shift() ?? (await new Promise((resolve) => waiting.push(resolve)));
  return { watcher, next, looks };
}

/** As many `watch` calls as are granted work; then the system has no more. */
function limited(granted: number, code: string) {
  const state = { granted, open: 0 };
  const limitedWatch = ((...args: Parameters<typeof watch>) => {
    if (state.open >= state.granted)
      throw Object.assign(new Error(`${code}: no more watches`), { code });
    state.open++;
    return watch(...args);
  }) as typeof watch;
  return { state, watch: limitedWatch };
}

describe('a watcher', () => {
  it('tells what was added, changed and removed, in one batch', async () => {
    await mkdir(root);
    await writeFile(join(root, 'a'), '1');
    await writeFile(join(root, 'b'), '1');
    const { next } = await watching();
    await appendFile(join(root, 'a'), '2');
    await rm(join(root, 'b'));
    await mkdir(join(root, 'c'));
    await writeFile(join(root, 'c/d'), '1');
    expect(await next()).toEqual(['added c/d', 'changed a', 'removed b']);
    await appendFile(join(root, 'c/d'), '2');
    expect(await next()).toEqual(['changed c/d']);
  });

  it('says at which paths something happened, and looks once for all that happens at a time', async () => {
    await mkdir(root);
    await writeFile(join(root, 'a'), '1');
    const { next, looks } = await watching();
    looks.length = 0;
    for (let i = 0; i < 20; i++) await appendFile(join(root, 'a'), '2');
    await writeFile(join(root, '.hidden'), '1');
    expect(await next()).toEqual(['changed a']);
    expect(looks[0]).toEqual(['root/a']);
  });

  it('tells what is different from what was known before it began', async () => {
    await mkdir(root);
    await writeFile(join(root, 'a'), '1');
    await writeFile(join(root, 'b'), '1');
    const before = await lookAt(root);
    await appendFile(join(root, 'a'), '2');
    await rm(join(root, 'b'));
    const { next } = await watching({ known: before.files, places: before });
    expect(await next()).toEqual(['changed a', 'removed b']);
  });

  it('does not wait for ever while changes never end', async () => {
    await mkdir(root);
    await writeFile(join(root, 'a'), '1');
    const { next } = await watching({ debounceMs: 50 });
    const end = new AbortController();
    const writing = (async () => {
      while (!end.signal.aborted) await appendFile(join(root, 'a'), 'x');
    })();
    expect(await next()).toEqual(['changed a']);
    end.abort();
    await writing;
  });

  it('waits 500 ms for more unless told otherwise, and 2.5 s at most', async () => {
    await mkdir(root);
    await writeFile(join(root, 'a'), '0');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { watcher, looks } = await watching({ debounceMs: undefined });
    const edit = async () => {
      await appendFile(join(root, 'a'), 'x');
      // The edit is heard when its event has made the watcher doubt, or when the loop has polled for it.
      for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
      expect(watcher.current).toBe(false);
    };
    looks.length = 0;
    await edit();
    vi.advanceTimersByTime(499);
    expect(looks).toHaveLength(0);
    vi.advanceTimersByTime(1);
    expect(looks).toHaveLength(1);
    await expect.poll(() => watcher.current, { interval: 1 }).toBe(true);
    for (let waited = 0; waited < 2_400; waited += 400) {
      await edit();
      vi.advanceTimersByTime(400);
    }
    expect(looks).toHaveLength(1);
    vi.advanceTimersByTime(100);
    expect(looks).toHaveLength(2);
  });

  it('knows at once that something happened, before it has looked', async () => {
    await mkdir(root);
    await writeFile(join(root, 'a'), '1');
    const { watcher, next } = await watching({ debounceMs: 60_000 });
    expect(watcher.current).toBe(true);
    await appendFile(join(root, 'a'), '2');
    await expect.poll(() => watcher.current, { interval: 1 }).toBe(false);
    watcher.close();
    void next;
  });

  it('follows a link in the middle of the way to its folder', async () => {
    for (const version of ['v1', 'v2']) {
      await mkdir(join(base, version, 'root'), { recursive: true });
      await writeFile(join(base, version, 'root/a'), version);
    }
    await symlink('v1', join(base, 'current'));
    await symlink('current/root', root);
    const { next } = await watching();
    await symlink('v2', join(base, '.new'));
    await rename(join(base, '.new'), join(base, 'current'));
    expect(await next()).toEqual(['changed a']);
    await appendFile(join(base, 'v2/root/a'), '2');
    expect(await next()).toEqual(['changed a']);
  });

  it('says nothing after it was closed', async () => {
    await mkdir(root);
    const said: unknown[] = [];
    const { watcher } = await watching({ onChange: (changes) => void said.push(changes) });
    const { next } = await watching();
    watcher.close();
    await writeFile(join(root, 'a'), '1');
    expect(await next()).toEqual(['added a']);
    expect([said, watcher.current]).toEqual([[], false]);
  });
});

it('looks once more where a watch took the place of another one, with which went what it had not told', async () => {
  let stamp = '1';
  let listener: WatchListener<string> = () => undefined;
  const silent = ((_folder: string, _options: object, told: typeof listener) => {
    listener = told;
    const replaced = { close: () => void (stamp = '2') };
    return Object.assign(new EventEmitter(), replaced) as unknown as FSWatcher;
  }) as typeof watch;
  let looks = 0;
  const changes: (readonly FileChange[])[] = [];
  const folders = new Map([['/folder', () => true]]);
  const watcher = new FileWatcher({
    source: 'mine',
    watch: silent,
    places: { folders, ways: [] },
    known: new Map([['a', '1']]),
    look: async () => {
      const files = new Map([['a', stamp]]);
      // Something beside the files: the folder may have been exchanged.
      if (++looks === 1) listener('rename', '.a.new');
      return { files, folders: new Map(folders), ways: [] };
    },
    onChange: (batch) => changes.push(batch),
  });
  close.push(() => watcher.close());
  await watcher.start();
  expect(changes).toEqual([[{ kind: 'changed', path: 'a' }]]);
});

describe('where the system gives no more watches', () => {
  for (const code of ['ENOSPC', 'EMFILE']) {
    it(`wsl-4739: ${code} is a problem once, and files are looked at from time to time until it is over`, async () => {
      await mkdir(join(root, 'in'), { recursive: true });
      await writeFile(join(root, 'in/a'), '1');
      const limit = limited(2, code);
      const { watcher } = await watching({ watch: limit.watch });
      const { problem } = watcher;
      expect(problem).toMatchObject({ code: 'watch-limit', source: 'mine', severity: 'warning' });
      expect(problem?.message).toContain(code);
      expect(watcher.current).toBe(false);
      limit.state.granted = 10;
      await appendFile(join(root, 'new'), '2');
      await expect.poll(() => watcher.current, { timeout: 10_000 }).toBe(true);
      expect(watcher.problem).toBeUndefined();
    });
  }
});

it('wsl-4739: where no folder at all can be watched, what changed is told after 5 s', async () => {
  await mkdir(root);
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { next } = await watching({ watch: limited(0, 'ENOSPC').watch });
  await writeFile(join(root, 'a'), '1');
  const told = next();
  vi.advanceTimersByTime(5_000);
  expect(await told).toEqual(['added a']);
});

describe('where the system tells nothing', () => {
  const silent = (() => {
    const emitter = Object.assign(new EventEmitter(), { close: () => undefined });
    return emitter as unknown as FSWatcher;
  }) as typeof watch;

  it('wsl-4739: with `poll` changes are seen all the same', async () => {
    await mkdir(root);
    const { watcher, next } = await watching({ poll: 20, watch: silent });
    expect(watcher.current).toBe(false);
    await writeFile(join(root, 'a'), '1');
    expect(await next()).toEqual(['added a']);
    await appendFile(join(root, 'a'), '2');
    expect(await next()).toEqual(['changed a']);
  });
});
