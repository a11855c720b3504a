import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

const app = fileURLToPath(new URL('..', import.meta.url));
const { dependencies } = JSON.parse(readFileSync(join(app, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
};
/** The demo as one file, as it is bundled for a test. */
export async function buildProgram(): Promise<Program> {
  const folder = await mkdtemp(join(app, '.test-'));
  const program = join(folder, 'main.mjs');
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
  return {
    run: (args, options = {}) => run(program, args, options),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export interface Program {
  /** Runs it; `on` is shown everything it wrote so far, whenever it writes. */
  run(args: readonly string[], options?: RunOptions): Promise<Ended>;
  remove(): Promise<void>;
}

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly on?: (output: string, child: ChildProcessByStdio<Writable, Readable, Readable>) => void;
}

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

async function run(program: string, args: readonly string[], options: RunOptions): Promise<Ended> {
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

export const pidsIn = (output: string) =>
  [...output.matchAll(/(?<=\s)\d{3,7}(?=\s)/g)].map(([pid]) => Number(pid));
export const foldersIn = (output: string) =>
  [...output.matchAll(/\/\S*patchbay-demo-\w{6}/g)].map(([path]) => path);

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
