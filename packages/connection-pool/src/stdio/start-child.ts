import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { stat } from 'node:fs/promises';

import { PatchbayError } from '@patchbay/protocols';
import spawn from 'cross-spawn';

import { childEnvironment } from './child-environment.ts';

/** A program to start. */
export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string>> | undefined;
  readonly cwd: string | undefined;
}

/**
 * Starts a program with pipes, in a process group of its own, without a shell. (On Windows `npx` and the like are scripts
 * of the command interpreter; cross-spawn hands their arguments through it unharmed.)
 * `started` is told of it in the same moment.
 * @throws PatchbayError `connect-failed` that names the program and what to do
 */
export async function startChild(
  options: ChildOptions,
  started?: (child: ChildProcessWithoutNullStreams) => void,
): Promise<ChildProcessWithoutNullStreams> {
  const { command, args = [], cwd } = options;
  const env = childEnvironment(options.env);
  if (command.trim() === '')
    throw new PatchbayError('connect-failed', 'The command is empty. Name the program to start.');
  const child = spawn(command, [...args], {
    env,
    stdio: 'pipe',
    shell: false,
    detached: process.platform !== 'win32',
    windowsHide: true,
    ...(cwd === undefined ? {} : { cwd }),
  }) as ChildProcessWithoutNullStreams;
  started?.(child);
  // EPIPE and ECONNRESET are events; without a listener they would end the program.
  for (const stream of [child.stdin, child.stdout, child.stderr])
    stream.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', () => {
      child.on('error', () => undefined);
      resolve();
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      void why(error, options, env).then(reject, reject);
    });
  });
  return child;
}

async function why(
  error: NodeJS.ErrnoException,
  options: ChildOptions,
  env: Readonly<Record<string, string>>,
): Promise<PatchbayError> {
  const { command, cwd } = options;
  // Node adds the arguments, which may hold secrets.
  delete (error as { spawnargs?: unknown }).spawnargs;
  const failed = (message: string) =>
    new PatchbayError('connect-failed', message, {
      cause: error,
      details: { command, errno: error.code },
    });
  if (cwd !== undefined && !(await isFolder(cwd))) {
    return failed(
      `${command} cannot be started: its working directory ${cwd} does not exist. Create it or mend \`cwd\`.`,
    );
  }
  if (error.code === 'ENOENT' && command !== command.trim())
    return failed(`The command ${JSON.stringify(command)} has blanks around it. Remove them.`);
  if (error.code === 'ENOENT') {
    const searched = env['PATH'];
    return failed(
      `${command}: command not found. Install it, or mend \`command\`. Searched in PATH: ${searched === undefined || searched === '' ? '(empty)' : searched}`,
    );
  }
  if (error.code === 'EACCES')
    return failed(`${command} is not executable. Make it executable, or mend \`command\`.`);
  return failed(`${command} cannot be started: ${error.message}`);
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
