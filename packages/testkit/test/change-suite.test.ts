import { changeSource, type ChangeEvent, type ChangeObservable } from '@patchbay/protocols';

import { changeSuite, type ChangeSubject } from '../src/index.ts';
import { HANGS, prove } from './prove.ts';

/** A source, and what makes it change. */
function lamp(
  more: (made: ChangeObservable & { readonly change: () => void }) => Partial<ChangeSubject> & {
    readonly broken?: Partial<ChangeObservable>;
  } = () => ({}),
): ChangeSubject {
  const listeners = new Set<() => void>();
  const source = changeSource('lamp', (emit) => {
    const listener = () => emit('tools_changed');
    listeners.add(listener);
    return () => void listeners.delete(listener);
  });
  const change = () => {
    for (const listener of listeners) listener();
  };
  const made = { revision: source.revision, changes: source.subscribe, change };
  const { broken, ...rest } = more(made);
  return {
    capability: { id: 'lamp', ...made, ...broken },
    change,
    listeners: () => listeners.size,
    ...rest,
  };
}

/** Its events, through a function. */
const through = (each: (event: ChangeEvent) => readonly ChangeEvent[]) => (): ChangeSubject =>
  lamp((made) => ({
    broken: {
      changes: (signal) => {
        const events = made.changes(signal);
        return (async function* () {
          for await (const event of events) yield* each(event);
        })();
      },
    },
  }));

prove(changeSuite, () => lamp(), {
  'has a revision, and another one after a change': {
    subject: () => lamp(() => ({ broken: { revision: () => 1 } })),
    says: /still 1/,
  },
  'keeps its revision while somebody listens and nothing changes': {
    subject: () => {
      let asked = 0;
      return lamp(() => ({ broken: { revision: () => ++asked } }));
    },
    says: /The revision/,
  },
  'has another revision after a change that nobody listened to': {
    subject: () => lamp(() => ({ broken: { revision: () => 1 } })),
    says: HANGS,
  },
  'tells its changes in its own name, with a kind': {
    subject: through((event) => [{ ...event, capability: 'other' }]),
    says: /capability of the event/,
  },
  'tells every listener, from the moment it listens': {
    subject: () => {
      const queue: (() => void)[] = [];
      const changes = async function* (signal: AbortSignal): AsyncGenerator<ChangeEvent> {
        while (!signal.aborted) {
          await new Promise<void>((resolve) => {
            queue.push(resolve);
            signal.addEventListener('abort', () => resolve(), { once: true });
          });
          if (!signal.aborted) yield { capability: 'lamp', kind: 'tools_changed' };
        }
      };
      return lamp(() => ({ broken: { changes }, change: () => queue.shift()?.() }));
    },
    says: HANGS,
  },
  'loses no change that comes while the one before is handled': {
    subject: () => {
      let told = false;
      return through((event) => {
        if (told) return [];
        told = true;
        return [event];
      })();
    },
    says: HANGS,
  },
  'lets nothing pile up before a slow listener': {
    subject: through((event) => Array.from({ length: 100 }, () => event)),
    says: /one of each/,
  },
  'ends when its signal aborts, and at once when it has': {
    subject: () =>
      lamp((made) => ({
        broken: { changes: () => made.changes(new AbortController().signal) },
      })),
    says: HANGS,
  },
  'lets go of its source when the last listener leaves, by signal or by leaving the loop': {
    subject: () => lamp(() => ({ listeners: () => 1 })),
    says: /Listeners that are left/,
  },
});
