import type { Action, CapabilityNameBackend } from '@patchbay/capability-name';

/** A backend in memory: say `set` to change what it can do. */
export function backend(): CapabilityNameBackend & {
  set(actions: readonly Action[]): void;
  listeners(): number;
} {
  let actions: readonly Action[] = [
    { name: 'echo', description: 'Says it again.' },
    { name: 'fail', description: 'Always fails.' },
    { name: 'hang', description: 'Never answers.' },
  ];
  const listeners = new Set<() => void>();
  return {
    actions: async () => actions,
    run: (name, input, signal) => {
      if (name === 'hang') {
        return new Promise((_, reject) => {
          if (signal?.aborted === true) reject(new Error('stopped'));
          signal?.addEventListener('abort', () => reject(new Error('stopped')), { once: true });
        });
      }
      return name === 'fail' ? Promise.reject(new Error('no paper')) : Promise.resolve(input);
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    set: (next) => {
      actions = next;
      for (const listener of listeners) listener();
    },
    listeners: () => listeners.size,
  };
}
