import {
  changeSource,
  defineTool,
  PatchbayError,
  scopeCovers,
  type AnyCapability,
  type CompiledView,
  type ExtensionView,
  type RegistrationScope,
  type Scope,
  type TurnView,
} from '@patchbay/protocols';
import { ExtensionRegistry, type RegistrationHandle } from '@patchbay/registry';
import { expect, it, onTestFinished } from 'vitest';

import { random, seed } from './random.ts';

/** What was asked, called or closed, and waits until the scheduler lets it go on, in whatever order. */
class Scheduler {
  readonly #waiting: { readonly goOn: () => void; readonly fail: () => void }[] = [];
  readonly #pick: (below: number) => number;

  constructor(pick: (below: number) => number) {
    this.#pick = pick;
  }

  get idle(): boolean {
    return this.#waiting.length === 0;
  }

  async until<T>(value: () => T): Promise<T> {
    await new Promise<void>((goOn, fail) =>
      this.#waiting.push({ goOn, fail: () => fail(new Error('as the scheduler wants it')) }),
    );
    return value();
  }

  /** One of ten fails. */
  step(): void {
    const [one] = this.#waiting.splice(this.#pick(this.#waiting.length), 1);
    if (this.#pick(10) === 0) one?.fail();
    else one?.goOn();
  }
}

/** A capability whose life is watched. */
interface Watched {
  readonly capability: AnyCapability;
  readonly at: RegistrationScope;
  readonly handle: RegistrationHandle;
  disposed: number;
  asked: number;
}

const SESSIONS = ['s1', 's2', 's3'];
const SCOPES: readonly RegistrationScope[] = [
  {},
  { agent: 'a', everySession: true },
  ...SESSIONS.flatMap((session) => [{ session }, { session, agent: 'a' }, { session, turn: 't' }]),
];
const ASKING: readonly Scope[] = [
  {},
  ...SESSIONS.flatMap((session) => [{ session }, { session, agent: 'a' }]),
];

/** Lets what can go on go on. */
const turnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));

/** One registry, and people who do everything to it at the same time. */
class Crowd {
  readonly #pick: (below: number) => number;
  readonly #scheduler: Scheduler;
  readonly registry: ExtensionRegistry = new ExtensionRegistry({ onProblem: () => undefined });
  readonly watched: Watched[] = [];
  readonly outcomes: Promise<unknown>[] = [];
  readonly #views: ExtensionView[] = [];
  readonly #turns: TurnView[] = [];
  readonly #compiled: CompiledView[] = [];
  #listening = 0;
  #id = 0;

  constructor(pick: (below: number) => number) {
    this.#pick = pick;
    this.#scheduler = new Scheduler(pick);
  }

  get listening(): number {
    return this.#listening;
  }

  /** One of them does one thing. */
  act(): void {
    const acts = [
      () => this.#register(),
      () => this.#register(),
      () => this.#compile(),
      () => this.#compile(),
      () => this.#call(),
      () => this.#listen(),
      () => this.#turn(),
      () => this.#expect(this.#any(this.watched)?.handle.close(), 'source-failed'),
      () => this.#expect(this.#any(this.#views)?.close(), 'source-failed'),
      () => this.#expect(this.#any(this.#turns)?.close(), 'source-failed'),
      () => {
        if (this.#pick(4) === 0)
          this.#expect(this.registry.close({ session: SESSIONS[this.#pick(3)]! }), 'source-failed');
      },
      () => this.#emit(),
    ];
    acts[this.#pick(acts.length)]!();
    for (let i = this.#pick(3); i > 0; i--) this.#scheduler.step();
  }

  /** Everything that waits goes on, until nothing waits. */
  async rest(): Promise<void> {
    let quiet = 0;
    while (quiet < 3) {
      quiet = this.#scheduler.idle ? quiet + 1 : 0;
      this.#scheduler.step();
      await turnOfTheLoop();
    }
  }

  #any<T>(list: readonly T[]): T | undefined {
    return list[this.#pick(Math.max(1, list.length))];
  }

  /** It ends, well or with one of these codes. */
  #expect(run: Promise<unknown> | undefined, ...codes: readonly string[]): void {
    if (run === undefined) return;
    this.outcomes.push(
      run.then(
        () => 'well',
        (error: unknown) => {
          expect(PatchbayError.isInstance(error), String(error)).toBe(true);
          expect(codes).toContain((error as PatchbayError).code);
        },
      ),
    );
  }

  #register(): void {
    const scheduler = this.#scheduler;
    const id = `c${this.#id++}`;
    const at = SCOPES[this.#pick(SCOPES.length)]!;
    const source = changeSource(id, () => {
      this.#listening++;
      return () => this.#listening--;
    });
    const alive = <T>(value: T): T => {
      watched.asked++;
      return value;
    };
    const tool = defineTool({
      capability: id,
      name: 'x',
      call: () => scheduler.until(() => id),
    });
    const readsScope = this.#pick(2) === 0;
    const capability: AnyCapability & { readonly emit: typeof source.emit } = {
      id,
      emit: source.emit,
      revision: this.#pick(2) === 0 ? source.revision : () => 0,
      changes: source.subscribe,
      tools: (context) => {
        if (readsScope) void context.scope;
        alive(undefined);
        return scheduler.until(() => [tool]);
      },
      instructions: async ({ peers }) => {
        const skills = readsScope ? await peers.skills() : [];
        return [{ source: id, kind: 'static', text: skills.map(({ source: s }) => s).join() }];
      },
      listSkills: () =>
        scheduler.until(() => [{ uri: `skill://${id}`, name: id, description: id, origin: id }]),
      openSkill: async () => undefined,
      skillExists: async () => false,
      prepareTurn: () => scheduler.until(() => undefined),
      [Symbol.asyncDispose]: () => {
        watched.disposed++;
        return scheduler.until(() => undefined);
      },
    };
    const handle = this.registry.register(capability, at);
    const watched: Watched = { capability, at, handle, disposed: 0, asked: 0 };
    this.watched.push(watched);
  }

  #view(): ExtensionView {
    const view = this.registry.view(ASKING[this.#pick(ASKING.length)]);
    this.#views.push(view);
    return view;
  }

  #compile(): void {
    const view = (this.#pick(2) === 0 ? undefined : this.#any(this.#views)) ?? this.#view();
    const gone = this.watched
      .filter(({ disposed }) => disposed > 0)
      .map(({ handle: { id } }) => id);
    const compile = view.compile().then((compiled) => {
      this.#compiled.push(compiled);
      for (const { id } of compiled.tools) {
        const { at } = this.watched.find(({ handle }) => handle.id === id.capability)!;
        expect(
          scopeCovers(at, view.scope),
          `${id.capability} in ${JSON.stringify(view.scope)}`,
        ).toBe(true);
        expect(gone).not.toContain(id.capability);
      }
    });
    this.#expect(compile, 'closed');
  }

  #call(): void {
    const compiled = this.#any(this.#compiled);
    const tool = this.#any(compiled?.tools ?? []);
    if (compiled === undefined || tool === undefined) return;
    const stop = new AbortController();
    const call = compiled.callTool(tool.definition.name, {}, { signal: stop.signal });
    this.#expect(call, 'closed', 'tool-unavailable', 'source-failed', 'aborted');
    if (this.#pick(4) === 0) stop.abort();
  }

  #turn(): void {
    const turn = this.#view().beginTurn({ turnId: 't' });
    this.#turns.push(turn);
    this.#expect(turn.prepare(), 'closed');
  }

  #listen(): void {
    const stop = new AbortController();
    const changes = this.registry.changes(ASKING[this.#pick(ASKING.length)], {
      signal: stop.signal,
    });
    let left = this.#pick(5);
    const read = async () => {
      for await (const _ of changes) if (left-- === 0) break;
    };
    this.#expect(read());
    if (this.#pick(4) === 0) stop.abort();
  }

  #emit(): void {
    const one = this.#any(this.watched)?.capability as { emit?(kind: string): void } | undefined;
    one?.emit?.('tools_changed');
  }
}

it.each(Array.from({ length: 12 }, (_, i) => seed + i))(
  'whatever is done at the same time, in whatever order, ends in a defined way (SEED=%i)',
  async (seedOfRound) => {
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', onUnhandled);
    onTestFinished(() => void process.off('unhandledRejection', onUnhandled));
    const pick = random(seedOfRound);
    const crowd = new Crowd(pick);
    const { registry, watched } = crowd;
    for (let i = 0; i < 150; i++) {
      crowd.act();
      if (pick(2) === 0) await turnOfTheLoop();
    }
    await crowd.rest();

    // At rest, every scope sees what is registered for it and not closed.
    for (const scope of ASKING) {
      const seen: string[] = [];
      for (let tries = 0; tries < 20; tries++) {
        const compile = registry.view(scope).compile();
        await crowd.rest();
        const { tools, problems } = await compile;
        seen.splice(0, Infinity, ...tools.map(({ id }) => id.capability));
        if (problems.length === 0) break; // a source that failed, as the scheduler wanted, is asked again
      }
      const open = watched.filter(({ at, disposed }) => disposed === 0 && scopeCovers(at, scope));
      expect(seen.toSorted()).toEqual(open.map(({ handle }) => handle.id).toSorted());
    }

    const closes = [registry.close(), registry.close()].map((close) =>
      close.catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'source-failed' });
      }),
    );
    const asked = watched.map((one) => one.asked);
    await crowd.rest();
    await Promise.all([...closes, ...crowd.outcomes]);
    expect(watched.map(({ disposed }) => disposed)).toEqual(watched.map(() => 1));
    expect(watched.map((one) => one.asked)).toEqual(asked);
    expect(registry.inspect()).toEqual([]);
    expect(crowd.listening).toBe(0);
    for (const session of [undefined, ...SESSIONS]) {
      const { running } = registry.activity(session === undefined ? {} : { session });
      expect(running, session).toBe(0);
    }
    expect(unhandled).toEqual([]);
  },
);
