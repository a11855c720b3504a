import { spawn, type ChildProcess } from 'node:child_process';

import { signalTree } from './process-tree.ts';

/**
 * Reads `+ pid` and `- pid`. Its input ends with our program, however that ended; whatever has not ended a moment later
 * is killed, with its group.
 */
const WATCH = `left=' '
while read -r what pid; do
  case $what in
    +) left="$left$pid " ;;
    -) left="\${left%% $pid *} \${left#* $pid }" ;;
  esac
done
for pid in $left; do sleep 1; break; done
for pid in $left; do kill -s KILL -- "-$pid"; done 2>/dev/null`;

/**
 * Sees to it that no child outlives our own process. At its orderly end ('exit') they are killed. A signal, or the kernel,
 * ends it without telling: for that a shell waits beside it while there are children. (A listener for signals would take
 * the decision about them from the program. On Windows there is only the former.)
 */
export class ExitGuard {
  readonly #left = new Set<ChildProcess>();
  #watch: ChildProcess | undefined;
  readonly #kill = (): void => {
    for (const child of this.#left) signalTree(child, 'SIGKILL');
  };

  add(child: ChildProcess): void {
    if (child.pid === undefined) return;
    if (this.#left.size === 0) this.#start();
    this.#left.add(child);
    this.#watch?.stdin?.write(`+ ${child.pid}\n`);
  }

  delete(child: ChildProcess): void {
    if (!this.#left.delete(child)) return;
    this.#watch?.stdin?.write(`- ${child.pid}\n`);
    if (this.#left.size > 0) return;
    process.off('exit', this.#kill);
    this.#watch?.stdin?.end();
    this.#watch = undefined;
  }

  #start(): void {
    process.on('exit', this.#kill);
    if (process.platform === 'win32') return;
    const watch = spawn('/bin/sh', ['-c', WATCH], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
    });
    // Where there is no shell, there is only the orderly end.
    watch.on('error', () => undefined);
    watch.stdin.on('error', () => undefined);
    watch.unref();
    (watch.stdin as { unref?: () => void }).unref?.();
    this.#watch = watch;
  }
}
