import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const app = fileURLToPath(new URL('..', import.meta.url));
const { dependencies } = JSON.parse(readFileSync(join(app, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
};
let folder: string;
let program: string;

beforeAll(async () => {
  folder = await mkdtemp(join(app, '.test-'));
  program = join(folder, 'main.mjs');
  await build({
    entryPoints: [join(app, 'src/main.ts')],
    outfile: program,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    mainFields: ['module', 'main'],
    conditions: ['@patchbay/source'],
    // What the demo itself installs is taken as it is installed; the rest is bundled.
    external: Object.keys(dependencies).filter((name) => !name.startsWith('@patchbay/')),
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the program; `on` is shown everything it wrote so far, whenever it writes. */
async function run(
  args: readonly string[],
  options: {
    readonly env?: Readonly<Record<string, string>>;
    readonly input?: string;
    readonly on?: (
      output: string,
      child: ChildProcessByStdio<Writable, Readable, Readable>,
    ) => void;
  } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env['PATH'], ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      options.on?.(output, child);
    });
  }
  if (options.input === undefined) child.stdin.end();
  else child.stdin.end(options.input);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}

const pidsIn = (output: string) =>
  [...output.matchAll(/(?<=\s)\d{3,7}(?=\s)/g)].map(([pid]) => Number(pid));
const foldersIn = (output: string) =>
  [...output.matchAll(/\/\S*patchbay-demo-\w{6}/g)].map(([path]) => path);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('the demo as a program', () => {
  it('shows its points, says how many checks held, and leaves nothing', async () => {
    const { code, output } = await run([]);
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

  it.each(['the next step sees'])('ends cleanly when it is interrupted at "%s"', async (point) => {
    let interrupted = false;
    const { code, output } = await run([], {
      on: (soFar, child) => {
        if (interrupted || !soFar.includes(point)) return;
        interrupted = true;
        child.kill('SIGINT');
      },
    });
    expect(code).toBe(130);
    expect(pidsIn(output).filter(isAlive)).toEqual([]);
    expect(foldersIn(output).filter(existsSync)).toEqual([]);
  });

  it('ends cleanly when nobody reads its output any more', async () => {
    const { code, output } = await run([], {
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

  it('says that a real model needs a key, and which models there are', async () => {
    expect(await run(['--model', 'anthropic/claude-sonnet-4-5'])).toMatchObject({
      code: 2,
      output: expect.stringContaining('ANTHROPIC_API_KEY'),
    });
    expect(await run(['--model', 'other/x'])).toMatchObject({
      code: 2,
      output: expect.stringContaining('openai/<model>'),
    });
  });

  it('chats, with slash commands', async () => {
    const input = '/exlpain x\nPlease write the release notes of this project.\n\n';
    const { code, output } = await run(['chat'], { input });
    expect(output).toContain('Did you mean /explain');
    expect(output).toContain('The release notes are in RELEASE_NOTES.md.');
    expect(code).toBe(0);
  });
});
