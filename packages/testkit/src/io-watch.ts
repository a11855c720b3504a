import { AsyncResource, createHook, executionAsyncId } from 'node:async_hooks';

/** Resources of Node that reach outside the process. Reading a file synchronously leaves no trace here. */
const OUTSIDE: ReadonlySet<string> = new Set([
  'DNSCHANNEL',
  'FILEHANDLE',
  'FSEVENTWRAP',
  'FSREQCALLBACK',
  'FSREQPROMISE',
  'GETADDRINFOREQWRAP',
  'HTTPCLIENTREQUEST',
  'PIPECONNECTWRAP',
  'PIPEWRAP',
  'PROCESSWRAP',
  'STATWATCHER',
  'TCPCONNECTWRAP',
  'TCPWRAP',
  'TLSWRAP',
  'UDPWRAP',
  'WORKER',
]);

/** Runs `act` and one turn of the event loop more; tells what it, and whatever it started, reached outside for. */
export async function watchIo<T>(
  act: () => T,
): Promise<{ readonly value: Awaited<T>; readonly reached: readonly string[] }> {
  const ours = new Set<number>();
  const reached = new Set<string>();
  const hook = createHook({
    init: (id, type, trigger) => {
      if (!ours.has(executionAsyncId()) && !ours.has(trigger)) return;
      ours.add(id);
      if (OUTSIDE.has(type)) reached.add(type);
    },
  });
  const root = new AsyncResource('patchbay.watch');
  ours.add(root.asyncId());
  hook.enable();
  try {
    const value = await root.runInAsyncScope(act);
    await new Promise((resolve) => setImmediate(resolve));
    return { value, reached: [...reached].toSorted() };
  } finally {
    hook.disable();
  }
}
