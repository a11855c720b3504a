import {
  isChangeObservable,
  isCommandResource,
  isResourceProvider,
  isSkillResource,
  isToolSource,
  PatchbayError,
  problemFrom,
  toolsFromSource,
  type CommandEntry,
  type CompileContext,
  type InstructionBlock,
  type Problem,
  type ResourceEntry,
  type SkillEntry,
  type Tool,
  type ToolDefinition,
} from '@patchbay/protocols';

import type { Registration } from './registration.ts';
import { keepIdentity } from './keep-identity.ts';
import { TrackedContext, type Peers } from './tracked-context.ts';
import type { Viewer } from './viewer.ts';
import { LATE, untilAnyOf, waitFor, type Life } from './waiting.ts';

/** What a capability can be asked for. */
export interface Facets {
  readonly tools: readonly Tool[];
  readonly instructions: readonly InstructionBlock[];
  readonly skills: readonly SkillEntry[];
  readonly commands: readonly CommandEntry[];
  readonly resources: readonly ResourceEntry[];
}
export type Facet = keyof Facets;

/** What a capability said. A failure is an answer too. */
export interface Answer<T> {
  /** The same number means the same answer. */
  readonly serial: number;
  /** Absent if it failed, or has not answered yet. */
  readonly value?: T;
  /** Why there is no value. */
  readonly failure?: Problem;
  /** What it reported beside its value. */
  readonly problems: readonly Problem[];
}

/** What answers need to know of the rest of the registry. */
export interface Surroundings {
  /** How long a source may take for an answer, in milliseconds. */
  readonly sourceTimeoutMs: number;
  peers(viewer: Viewer, asking: readonly Registration[], waiter?: Waiting): Peers & PeerTokens;
  /** A source answered after somebody stopped waiting for it. */
  late(registration: Registration, facet: Facet): void;
  /** The next number of an order that all registrations share. */
  next(): number;
  now(): number;
}

/** The state of the peers as one string, or `undefined` where it cannot be told without asking them. */
export interface PeerTokens {
  token(facet: 'skills' | 'commands'): string | undefined;
  /** The same, by asking those who cannot tell. */
  refresh(facet: 'skills' | 'commands'): Promise<string>;
}

/** How long to wait for an answer. */
export interface Patience {
  /** Milliseconds since the question was asked, not since somebody began to wait. */
  readonly deadlineMs: number;
  readonly until?: Life | undefined;
}

interface Kept<T> extends Answer<T> {
  readonly revision: number | string | undefined;
  /** State of what was read that can change by itself. */
  readonly tokens: ReadonlyMap<string, string | undefined>;
}

/** A question that is open, and the open questions that its own answer waits for. */
export interface Waiting {
  readonly waitsFor: Set<Waiting>;
}

interface Asked<T> extends Waiting {
  readonly key: string;
  readonly answer: Promise<Kept<T>>;
  readonly since: number;
  readonly end: (reason: unknown) => void;
  waiting: number;
  /** Somebody went on without it. */
  abandoned: boolean;
}

/** For whom an answer may be kept: learnt from what making it read. */
interface Audience {
  scope: boolean;
  identity: boolean;
}

/** What one facet of one capability answered, for whom, and whether it still holds. */
class FacetAnswers<F extends Facet> {
  readonly #registration: Registration;
  readonly #facet: F;
  readonly #ask: (context: CompileContext) => Promise<Facets[F]>;
  readonly #kept = new Map<string, Kept<Facets[F]>>();
  readonly #asked = new Map<string, Asked<Facets[F]>>();
  #audience: Audience | undefined;

  constructor(
    registration: Registration,
    facet: F,
    ask: (context: CompileContext) => Promise<Facets[F]>,
  ) {
    this.#registration = registration;
    this.#facet = facet;
    this.#ask = ask;
  }

  /** The kept answer, if nothing that it was made of has changed. Never waits. */
  peek(
    viewer: Viewer,
    around: Surroundings,
    asking: readonly Registration[],
  ): Answer<Facets[F]> | undefined {
    const kept = this.#kept.get(this.#key(viewer));
    return kept !== undefined && this.#holds(kept, viewer, around, asking) ? kept : undefined;
  }

  async get(
    viewer: Viewer,
    around: Surroundings,
    asking: readonly Registration[],
    patience: Patience,
    waiter?: Waiting,
  ): Promise<Answer<Facets[F]>> {
    for (;;) {
      const fresh = this.peek(viewer, around, asking);
      if (fresh !== undefined) return fresh;
      const unchanged = await this.#unchanged(viewer, around, asking, waiter);
      if (unchanged !== undefined) return unchanged;
      const key = this.#key(viewer);
      const open = this.#asked.get(key);
      if (open !== undefined && waiter !== undefined && leadsTo(open, waiter)) {
        // Two that read each other: the one asked second answers without the first.
        return this.#alone(viewer, around, asking, patience);
      }
      const asked = open ?? this.#start(key, viewer, around, asking);
      waiter?.waitsFor.add(asked);
      const answer = await this.#wait(asked, patience, around);
      waiter?.waitsFor.delete(asked);
      if (answer === 'late') return this.#meanwhile(viewer, asked);
      // Made for this viewer, unless making it showed that it depends on more than was known: then look again.
      if (this.#kept.get(this.#key(viewer)) === answer || this.#registration.closed) return answer;
    }
  }

  forget(viewerKeys: (key: string) => boolean): void {
    for (const key of this.#kept.keys())
      if (viewerKeys(key.split('\0')[0]!)) this.#kept.delete(key);
  }

  #key(viewer: Viewer): string {
    const { scope, identity } = this.#audience ?? { scope: false, identity: false };
    return `${scope ? viewer.key : ''}\0${identity ? (viewer.identity?.id ?? '') : ''}`;
  }

  #revision(): number | string | undefined {
    const { capability } = this.#registration;
    return isChangeObservable(capability) && typeof capability.revision === 'function'
      ? capability.revision()
      : undefined;
  }

  #holds(
    kept: Kept<Facets[F]>,
    viewer: Viewer,
    around: Surroundings,
    asking: readonly Registration[],
  ): boolean {
    if (kept.failure !== undefined) {
      // A failure is asked again at every look, unless it said when.
      const retryAt = kept.failure.retryAt === undefined ? 0 : Date.parse(kept.failure.retryAt);
      if (!(retryAt > around.now())) return false;
    }
    if (kept.revision !== this.#revision()) return false;
    for (const [read, token] of kept.tokens) {
      if (
        token === undefined ||
        currentToken(read, viewer, around, [...asking, this.#registration]) !== token
      )
        return false;
    }
    return true;
  }

  /**
   * The kept answer, if all that keeps it from holding is that peers cannot vouch for themselves, and asking them shows that
   * they say the same as before.
   */
  async #unchanged(
    viewer: Viewer,
    around: Surroundings,
    asking: readonly Registration[],
    waiter: Waiting | undefined,
  ): Promise<Kept<Facets[F]> | undefined> {
    const kept = this.#kept.get(this.#key(viewer));
    if (kept === undefined || kept.failure !== undefined || kept.revision !== this.#revision())
      return undefined;
    const peers = around.peers(viewer, [...asking, this.#registration], waiter);
    for (const [read, token] of kept.tokens) {
      const now =
        read === 'skills' || read === 'commands'
          ? await peers.refresh(read)
          : stateToken(read, viewer);
      if (now !== token) return undefined;
    }
    return kept.tokens.size > 0 ? kept : undefined;
  }

  #start(
    key: string,
    viewer: Viewer,
    around: Surroundings,
    asking: readonly Registration[],
  ): Asked<Facets[F]> {
    const registration = this.#registration;
    if (registration.activated === 0) registration.activated = around.next();
    const { life, signal, end, release } = untilAnyOf(registration.gone);
    const waitsFor = new Set<Waiting>();
    const asked: Asked<Facets[F]> = {
      key,
      waitsFor,
      since: around.now(),
      end,
      waiting: 0,
      abandoned: false,
      answer: this.#make(
        viewer,
        around,
        [...asking, registration],
        { life, signal },
        {
          waitsFor,
        },
      ).then((made) => {
        release();
        // Given up meanwhile: a newer question may have been answered already.
        if (this.#asked.get(key) !== asked) return made;
        this.#asked.delete(key);
        this.#learn(made.reads);
        const kept = this.#settle(this.#key(viewer), made);
        if (asked.abandoned) around.late(registration, this.#facet);
        return kept;
      }),
    };
    this.#asked.set(key, asked);
    return asked;
  }

  async #make(
    viewer: Viewer,
    around: Surroundings,
    asking: readonly Registration[],
    until: { readonly life: Life; readonly signal: AbortSignal },
    waiter?: Waiting,
  ): Promise<Made<Facets[F]>> {
    const peers = around.peers(viewer, asking, waiter);
    const context = new TrackedContext(viewer, peers, until.signal);
    const made = { revision: this.#revision(), reads: context.reads, serial: around.next() };
    const rest = () => ({ tokens: tokensOf(context, viewer, peers), problems: context.reported });
    try {
      context.signal.throwIfAborted();
      // Nobody waits for a source that does not notice that it was aborted.
      const value = (await waitFor(this.#ask(context), Infinity, until.life)) as Facets[F];
      return { ...made, ...rest(), value };
    } catch (error) {
      const since = this.#kept.get(this.#key(viewer))?.failure?.since;
      const failure = problemFrom(this.#registration.id, error, {
        since: since ?? new Date(around.now()).toISOString(),
      });
      return { ...made, ...rest(), failure };
    }
  }

  /** An answer that is not kept: for one that is itself waited for. */
  async #alone(
    viewer: Viewer,
    around: Surroundings,
    asking: readonly Registration[],
    { until }: Patience,
  ): Promise<Answer<Facets[F]>> {
    const own = untilAnyOf(until, this.#registration.gone);
    try {
      return await this.#make(viewer, around, [...asking, this.#registration], own);
    } finally {
      own.release();
    }
  }

  #learn(reads: ReadonlySet<string>): void {
    const peers = reads.has('skills') || reads.has('commands');
    const learnt: Audience = {
      scope: this.#audience?.scope === true || peers || reads.has('scope') || reads.has('state'),
      identity: this.#audience?.identity === true || peers || reads.has('identity'),
    };
    const known = this.#audience;
    if (known?.scope === learnt.scope && known.identity === learnt.identity) return;
    this.#audience = learnt;
    this.#kept.clear(); // kept for the wrong audience
  }

  /** Keeps an answer, under the number of the one before if it says the same. */
  #settle(key: string, made: Made<Facets[F]>): Kept<Facets[F]> {
    const before = this.#kept.get(key);
    const kept = before === undefined ? made : continued(before, made);
    if (!this.#registration.closed) this.#kept.set(key, kept);
    return kept;
  }

  async #wait(
    asked: Asked<Facets[F]>,
    patience: Patience,
    around: Surroundings,
  ): Promise<Kept<Facets[F]> | 'late'> {
    const left = asked.since + patience.deadlineMs - around.now();
    asked.waiting++;
    try {
      const answer = await waitFor(asked.answer, left, patience.until);
      if (answer !== LATE) return answer;
      asked.abandoned = true;
      return 'late';
    } catch (error) {
      if (asked.waiting === 1 && !asked.abandoned) {
        asked.end(error);
        if (this.#asked.get(asked.key) === asked) this.#asked.delete(asked.key);
      }
      throw error;
    } finally {
      asked.waiting--;
    }
  }

  /** Somebody does not wait any longer: the answer before, if there is one, and a problem that says so. */
  #meanwhile(viewer: Viewer, asked: Asked<Facets[F]>): Answer<Facets[F]> {
    const before = this.#kept.get(this.#key(viewer));
    const { id } = this.#registration;
    const late = problemFrom(
      id,
      new PatchbayError(
        'source-slow',
        `"${id}" has not answered yet (${this.#facet}); it joins when it does.`,
      ),
      { since: new Date(asked.since).toISOString() },
    );
    if (before?.value === undefined) return { serial: -asked.since, failure: late, problems: [] };
    return { serial: before.serial, value: before.value, problems: before.problems };
  }
}

/** Whether the answer to `from` waits, through whatever chain, for the answer to `to`. */
function leadsTo(from: Waiting, to: Waiting, seen = new Set<Waiting>()): boolean {
  if (from.waitsFor === to.waitsFor) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return [...from.waitsFor].some((next) => leadsTo(next, to, seen));
}

interface Made<T> extends Kept<T> {
  readonly reads: ReadonlySet<string>;
}

/** A new answer in terms of the one before: same number if it says the same, same objects where they say the same. */
function continued<T>(before: Kept<T>, made: Kept<T>): Kept<T> {
  const { revision, tokens } = made;
  if (made.failure !== undefined) {
    const { code, message, retryAt } = made.failure;
    const was = before.failure;
    const same = was?.code === code && was.message === message && was.retryAt === retryAt;
    return same ? { ...before, revision, tokens } : made;
  }
  if (before.value === undefined) return made;
  const value = keepIdentity(before.value, made.value as T);
  const same =
    value === before.value && JSON.stringify(before.problems) === JSON.stringify(made.problems);
  return { ...made, value, ...(same ? { serial: before.serial } : {}) };
}

/** How what was read stood when it was read: peers as they were handed out, state as it is after the answer. */
function tokensOf(
  context: TrackedContext,
  viewer: Viewer,
  peers: PeerTokens,
): ReadonlyMap<string, string | undefined> {
  const tokens = new Map<string, string | undefined>();
  for (const read of context.reads) {
    if (read === 'skills' || read === 'commands') tokens.set(read, peers.token(read));
    else if (read.startsWith('state:')) tokens.set(read, stateToken(read, viewer));
  }
  return tokens;
}

function currentToken(
  read: string,
  viewer: Viewer,
  around: Surroundings,
  asking: readonly Registration[],
): string | undefined {
  if (read === 'skills' || read === 'commands') return around.peers(viewer, asking).token(read);
  return stateToken(read, viewer);
}

function stateToken(read: string, viewer: Viewer): string {
  const key = read.slice('state:'.length);
  return String(viewer.state.version(key === '*' ? undefined : key));
}

/** Everything one capability answered. */
export class Answers {
  readonly #registration: Registration;
  readonly #byFacet: { [F in Facet]?: FacetAnswers<F> } = {};

  constructor(registration: Registration) {
    this.#registration = registration;
  }

  /** `undefined` if the capability has nothing of this kind. */
  of<F extends Facet>(facet: F): FacetAnswers<F> | undefined {
    const known = this.#byFacet[facet];
    if (known !== undefined) return known;
    const ask = askerOf(facet, this.#registration);
    if (ask === undefined) return undefined;
    const made = new FacetAnswers(this.#registration, facet, ask);
    (this.#byFacet as { [K in Facet]?: unknown })[facet] = made;
    return made;
  }

  /** Drops what is kept for viewers that are gone. */
  forget(viewerKeys: (key: string) => boolean): void {
    for (const answers of Object.values(this.#byFacet)) answers.forget(viewerKeys);
  }
}

/** How to ask a capability for a facet; `undefined` if it has none. */
function askerOf<F extends Facet>(
  facet: F,
  registration: Registration,
): ((context: CompileContext) => Promise<Facets[F]>) | undefined {
  const { capability, id } = registration;
  const known = new WeakMap<ToolDefinition, Tool>();
  const askers: {
    [K in Facet]: () => ((context: CompileContext) => Promise<Facets[K]>) | undefined;
  } = {
    tools: () => {
      if (typeof capability.tools === 'function')
        return async (context) => capability.tools!(context);
      if (!isToolSource(capability) || typeof capability.listTools !== 'function') return undefined;
      return async (context) =>
        toolsFromSource(id, capability, await capability.listTools(context), known);
    },
    instructions: () =>
      typeof capability.instructions === 'function'
        ? async (context) => capability.instructions!(context)
        : undefined,
    skills: () =>
      isSkillResource(capability) ? async (context) => capability.listSkills(context) : undefined,
    commands: () =>
      isCommandResource(capability)
        ? async (context) => capability.listCommands(context)
        : undefined,
    resources: () =>
      isResourceProvider(capability) && typeof capability.listResources === 'function'
        ? async (context) => capability.listResources(context)
        : undefined,
  };
  const ask = askers[facet]();
  if (ask === undefined) return undefined;
  return async (context) => {
    const value: unknown = await ask(context);
    if (!Array.isArray(value)) {
      throw new PatchbayError(
        'source-failed',
        `"${id}" answered ${typeof value} instead of a list of ${facet}.`,
        { source: id },
      );
    }
    return value as Facets[F];
  };
}
