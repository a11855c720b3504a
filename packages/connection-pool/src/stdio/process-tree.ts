import { spawn, type ChildProcess } from 'node:child_process';

/**
 * Sends a signal to a child and to everything it started. On POSIX the child must lead a process group of its own
 * (`detached: true`); on Windows `taskkill` walks the tree. A tree that is gone is no error.
 */
export function signalTree(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  const { pid } = child;
  if (pid === undefined) return;
  if (process.platform === 'win32') {
    const args = ['/pid', String(pid), '/T', ...(signal === 'SIGKILL' ? ['/F'] : [])];
    spawn('taskkill', args, { stdio: 'ignore', windowsHide: true }).on('error', () =>
      child.kill(signal),
    );
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone.
  }
}
