// @ts-check
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Runs a command without a shell, and returns what it printed.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, timeout?: number, failing?: boolean }} [options] `env` in the place of
 *   this program's. `timeout` in milliseconds, two minutes by default. `failing`: a command that exits with another code
 *   than 0 is an answer, not an error.
 * @returns {Promise<string>} What it wrote to stdout.
 */
export async function run(command, args, { cwd, env, timeout = 120_000, failing = false } = {}) {
  try {
    const options = {
      cwd,
      env,
      timeout,
      killSignal: /** @type {const} */ ('SIGKILL'),
      maxBuffer: 1 << 26,
    };
    return (await promisify(execFile)(command, args, options)).stdout;
  } catch (thrown) {
    const {
      stdout = '',
      stderr = '',
      code,
      killed,
    } = /** @type {{ stdout?: string, stderr?: string, code?: unknown, killed?: boolean }} */ (
      thrown
    );
    if (failing && typeof code === 'number') return stdout;
    const end = killed ? `was stopped after ${timeout / 1000} s` : `ended with ${String(code)}`;
    const said = `${stdout}\n${stderr}`.trim();
    throw new Error(`${command} ${args.join(' ')} ${end}\n${said}`, { cause: thrown });
  }
}
