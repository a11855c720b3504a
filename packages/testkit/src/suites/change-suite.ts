import type { Capability, ChangeEvent, ChangeObservable } from '@patchbay/protocols';

import { ensure, ensureEqual, isText, show, until, within } from '../expectation.ts';
import type { Ended, Suite } from '../requirement.ts';

/** What {@link changeSuite} looks at. */
export interface ChangeSubject extends Ended {
  readonly capability: Pick<Capability, 'id'> & ChangeObservable;
  /** Makes a change in the real source, of the same kind each time. */
  readonly change: () => void | Promise<void>;
  /** How many listeners the source has, where that can be told: a watcher, a subscription. */
  readonly listeners?: () => number;
}

const MANY = 150;
const MICROTASKS = 200;

/** What everything does that tells its changes. (DESIGN "Changes", `ChangeObservable`) */
export const changeSuite: Suite<ChangeSubject> = {
  contract: 'ChangeObservable',
  requirements: [
    {
      name: 'has a revision, and another one after a change',
      check: ({ capability, change }) =>
        listening(capability, async (changes) => {
          const before = capability.revision();
          ensure(typeof before === 'number' || typeof before === 'string', show(before));
          await change();
          await next(changes);
          ensure(capability.revision() !== before, `The revision is still ${show(before)}`);
        }),
    },
    {
      name: 'keeps its revision while somebody listens and nothing changes',
      check: ({ capability, change }) =>
        listening(capability, async (changes) => {
          await change();
          await next(changes);
          await drained(changes);
          ensureEqual(capability.revision(), capability.revision(), 'The revision');
        }),
    },
    {
      name: 'has another revision after a change that nobody listened to',
      check: async ({ capability, change }) => {
        const before = capability.revision();
        await change();
        await until(
          () => capability.revision() !== before,
          `The revision is still ${show(before)}: the wait for another one`,
        );
      },
    },
    {
      name: 'tells its changes in its own name, with a kind',
      check: ({ capability, change }) =>
        listening(capability, async (changes) => {
          await change();
          const event = await next(changes);
          ensureEqual(event.capability, capability.id, 'The capability of the event');
          ensure(isText(event.kind), `The kind of the event is ${show(event.kind)}`);
        }),
    },
    {
      name: 'tells every listener, from the moment it listens',
      check: ({ capability, change }) =>
        listening(capability, (one) =>
          listening(capability, async (two) => {
            await change();
            ensureEqual((await next(one)).kind, (await next(two)).kind, 'What the second heard');
          }),
        ),
    },
    {
      name: 'loses no change that comes while the one before is handled',
      check: ({ capability, change }) =>
        listening(capability, async (changes) => {
          await change();
          await next(changes);
          await change();
          await next(changes);
        }),
    },
    {
      name: 'lets nothing pile up before a slow listener',
      check: ({ capability, change }) =>
        listening(capability, async (changes) => {
          for (let i = 0; i < MANY; i++) await change();
          await turnOfTheLoop();
          const waiting = [await next(changes), ...(await drained(changes))];
          const told = waiting.map(({ kind, sourceUri }) => `${kind} ${sourceUri ?? ''}`);
          ensureEqual(told.length, new Set(told).size, 'How many events waited, one of each');
        }),
    },
    {
      name: 'ends when its signal aborts, and at once when it has',
      check: async ({ capability }) => {
        const controller = new AbortController();
        const reading = capability.changes(controller.signal)[Symbol.asyncIterator]().next();
        controller.abort();
        const ended = await within(reading, 'The loop, after the abort');
        ensureEqual(ended.done, true, 'That a loop is done after the abort');
        const late = capability.changes(AbortSignal.abort())[Symbol.asyncIterator]();
        const { done } = await within(late.next(), 'A loop whose signal was aborted before');
        ensureEqual(done, true, 'That a loop whose signal was aborted before is done');
      },
    },
    {
      name: 'lets go of its source when the last listener leaves, by signal or by leaving the loop',
      check: async ({ capability, change, listeners }) => {
        for (const leave of ['abort', 'return'] as const) {
          const controller = new AbortController();
          const changes = capability.changes(controller.signal)[Symbol.asyncIterator]();
          await change();
          await next(changes);
          if (leave === 'abort') controller.abort();
          await within(Promise.resolve(changes.return?.()), 'Leaving the loop');
          if (listeners !== undefined) ensureEqual(listeners(), 0, 'Listeners that are left');
        }
        await listening(capability, async (changes) => {
          await change();
          await next(changes);
        });
      },
    },
  ],
};

type Changes = AsyncIterator<ChangeEvent>;

/** Listens while `during` runs. */
async function listening(
  capability: ChangeObservable,
  during: (changes: Changes) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  const changes = capability.changes(controller.signal)[Symbol.asyncIterator]();
  try {
    await during(changes);
  } finally {
    controller.abort();
    await changes.return?.();
  }
}

async function next(changes: Changes): Promise<ChangeEvent> {
  const result = await within(changes.next(), 'Hearing of a change');
  if (result.done === true) throw new Error('The changes ended, though nobody ended them.');
  return result.value;
}

/** Lets everything happen that waits for nothing outside of the process. */
async function turnOfTheLoop(): Promise<undefined> {
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

/** What waits to be read: each read that is answered before anything new can come in. */
async function drained(changes: Changes): Promise<readonly ChangeEvent[]> {
  const found: ChangeEvent[] = [];
  for (;;) {
    const result = await Promise.race([changes.next(), afterMicrotasks()]);
    if (result === undefined || result.done === true) return found;
    found.push(result.value);
  }
}

/** Long enough for whatever passes an event on, through however many generators. */
async function afterMicrotasks(): Promise<undefined> {
  for (let i = 0; i < MICROTASKS; i++) await Promise.resolve();
}
