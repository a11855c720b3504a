import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { PassThrough } from 'node:stream';

import { afterAll, describe, expect, it, vi } from 'vitest';

const { platform } = process;
/** As Node sees it there: modules look once, when they are loaded. */
const pretend = (name: NodeJS.Platform) =>
  Object.defineProperty(process, 'platform', { value: name });

interface Started {
  readonly command: string;
  readonly args: readonly string[];
  readonly options: { readonly env: Record<string, string>; readonly shell?: boolean };
}

/** What is handed to the operating system when a program is started on Windows. */
async function startOnWindows(command: string, args: readonly string[]): Promise<Started> {
  const processes = createRequire(import.meta.url)('node:child_process') as {
    spawn: (...call: readonly unknown[]) => unknown;
  };
  const started: Started[] = [];
  const spy = vi.spyOn(processes, 'spawn').mockImplementation((...call) => {
    const [program, given, options] = call as [string, string[], Started['options']];
    started.push({ command: program, args: given, options });
    const streams = {
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      stderr: new PassThrough(),
    };
    const child = Object.assign(new EventEmitter(), streams);
    setImmediate(() => child.emit('spawn'));
    return child;
  });
  try {
    const { startChild } = await import('../src/stdio/start-child.ts');
    await startChild({ command, args, env: undefined, cwd: undefined });
  } finally {
    spy.mockRestore();
  }
  return started[0]!;
}

/** What the command interpreter makes of a line: `^` takes the next character literally. Fails on what it would act on. */
function interpreted(line: string): string {
  return line.replaceAll(
    /\^(.)|([&|<>()%!"])/gs,
    (_all, literal: string | undefined, bare: string) => {
      if (literal === undefined)
        throw new Error(`${bare} is left to the command interpreter in ${line}`);
      return literal;
    },
  );
}

/** What a program makes of its command line. (Microsoft, "Parsing C command-line arguments") */
function parsed(line: string): readonly string[] {
  const words = line.match(/(?:[^\s"]|"(?:\\.|[^"\\])*")+/g) ?? [];
  return words.map((word) =>
    word
      .replaceAll(/^"|"$/g, '')
      .replaceAll(/\\"/g, '"')
      .replaceAll(/(\\+)$/g, (run) => run.slice(run.length / 2)),
  );
}

describe('cline-2157: a script of the command interpreter on Windows', () => {
  const before = { ...process.env };
  afterAll(() => {
    pretend(platform);
    for (const name of ['SystemRoot', 'PATHEXT', 'APPDATA', 'TEMP', 'Secret_Key'])
      if (before[name] === undefined) delete process.env[name];
  });

  it('gets its arguments unchanged, and the environment that programs need there', async () => {
    pretend('win32');
    Object.assign(process.env, {
      SystemRoot: String.raw`C:\Windows`,
      PATHEXT: '.COM;.EXE;.CMD',
      APPDATA: String.raw`C:\Users\a\AppData`,
      TEMP: String.raw`C:\Temp`,
      Secret_Key: 'no',
    });
    const args = ['-y', 'pkg', '--name=a b', '--x=1&2', '%PATH%', 'he said "hi"', 'tail\\'];
    const { command, args: given, options } = await startOnWindows('npx', args);
    expect(command.toLowerCase()).toContain('cmd');
    expect(given.slice(0, 3)).toEqual(['/d', '/s', '/c']);
    expect(options.shell).toBe(false);
    const line = given[3]!.replaceAll(/^"|"$/g, '');
    expect(parsed(interpreted(line))).toEqual(['npx', ...args]);
    expect(options.env).toMatchObject({
      SystemRoot: String.raw`C:\Windows`,
      PATHEXT: '.COM;.EXE;.CMD',
      APPDATA: String.raw`C:\Users\a\AppData`,
      TEMP: String.raw`C:\Temp`,
    });
    expect(options.env).not.toHaveProperty('Secret_Key');
  });
});
