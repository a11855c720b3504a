import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

import type { Arm, Cost } from './case.ts';
import { sample } from './measure.ts';

type Step = 'setup' | 'run' | 'answer' | 'teardown';
type Reply = { readonly value: unknown } | { readonly error: string };

/**
 * An arm in a process of its own. What the others leave in memory, and what the compiler learnt of them, is not in its
 * figures: no program has them all.
 */
export class ArmProcess implements Arm {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  /** `program` calls {@link serveArm} when it is started with `args`. */
  constructor(name: string, program: string, args: readonly string[]) {
    this.name = name;
    this.#child = fork(program, args, { serialization: 'advanced' });
    this.#ended = once(this.#child, 'exit');
  }

  async setup(): Promise<void> {
    await this.#ask('setup');
  }

  async run(): Promise<Cost> {
    return (await this.#ask('run')) as Cost;
  }

  answer(): Promise<unknown> {
    return this.#ask('answer');
  }

  async teardown(): Promise<void> {
    await this.#ask('teardown');
  }

  /** Resolves when the process has ended. */
  async end(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#ended;
  }

  async #ask(step: Step): Promise<unknown> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) throw this.#gone(step);
    this.#child.send(step);
    const stop = new AbortController();
    const { signal } = stop;
    const answered = once(this.#child, 'message', { signal }) as Promise<[Reply]>;
    const gone = once(this.#child, 'exit', { signal }).then(() => Promise.reject(this.#gone(step)));
    const [reply] = await Promise.race([answered, gone]).finally(() => {
      answered.catch(() => undefined);
      gone.catch(() => undefined);
      stop.abort();
    });
    if ('error' in reply) throw new Error(`${this.name}, ${step}: ${reply.error}`);
    return reply.value;
  }

  #gone(step: Step): Error {
    const { exitCode, signalCode } = this.#child;
    return new Error(
      `${this.name}, ${step}: its process has ended with ${signalCode ?? exitCode}.`,
    );
  }
}

/**
 * Does what the parent process asks for, until that goes.
 *
 * An arm has rested while the others ran, and is not what it is in a busy program: nothing of it is in the caches, and the
 * system has it on one core with its server. So what takes less than `leadMs` runs for so long before the run that counts.
 */
export function serveArm(arm: Arm, leadMs: number): void {
  let last = Infinity;
  const run = async () => {
    const end = performance.now() + leadMs;
    if (last < leadMs)
      do await arm.run();
      while (performance.now() < end);
    const before = performance.now();
    const cost = await sample(arm);
    last = performance.now() - before;
    return cost;
  };
  const steps: Readonly<Record<Step, () => Promise<unknown>>> = {
    setup: async () => arm.setup?.(),
    run,
    answer: async () => arm.answer?.(),
    teardown: async () => arm.teardown?.(),
  };
  process.on('message', (step: Step) => {
    void steps[step]().then(
      (value) => process.send!({ value } satisfies Reply),
      (error: unknown) =>
        process.send!({
          error: error instanceof Error ? (error.stack ?? error.message) : String(error),
        } satisfies Reply),
    );
  });
  process.on('disconnect', () => process.exit());
}
