import {
  isChangeObservable,
  isResourceProvider,
  isToolSource,
  PatchbayError,
  problemFrom,
  toolsFromSource,
  type AnyCapability,
  type CommandEntry,
  type CompileContext,
  type InstructionBlock,
  type Problem,
  type RegistrationScope,
  type ResourceEntry,
  type Scope,
  type SkillEntry,
  type Stop,
  type Tool,
  type ToolDefinition,
} from '@patchbay/protocols';

import { ByScope } from './by-scope.ts';
import type { Registration } from './registration.ts';
import { isBelow } from './scope-store.ts';
import { keepIdentity } from './keep-identity.ts';
import { TrackedContext, type Peers } from './tracked-context.ts';
import type { Viewer } from './viewer.ts';
import { LATE, untilAnyOf, waitFor } from './waiting.ts';

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
  peers(asker: Asker): Peers & PeerTokens;
  /** A source answered after somebody stopped waiting for it. */
  late(registration: Registration, facet: Facet): void;
  /** The next number of an order that all registrations share. */
  next(): number;
  now(): number;
}

/** The state of the peers as one string, or `undefined` where it cannot be told without asking them. */
export interface PeerTokens {
  ids(): readonly string[];
  token(facet: 'skills' | 'commands'): string | undefined;
  /** The same, by asking those who cannot tell. */
  refresh(facet: 'skills' | 'commands'): Promise<string>;
}

/** Who wants an answer. */
export interface Asker {
  readonly viewer: Viewer;
  /** For whom the viewer asks: who is being asked is not among the peers of those that it asks, so that asking ends. */
  readonly asking?: readonly Registration[];
  /** The question that waits for the answer. */
  readonly waiter?: Waiting | undefined;
  /** How long whoever asks is waited for, in milliseconds. Default: as long as a source may take. */
  readonly deadlineMs?: number;
}

/** How long to wait for an answer. */
export interface Patience {
  /** Milliseconds since the question was asked, not since somebody began to wait. */
  readonly deadlineMs: number;
  readonly until?: Stop | undefined;
}

interface Kept<T> extends Answer<T> {
  /** For whom it was made, if it is for nobody else. */
  readonly scope?: Scope;
  readonly revision: number | string | undefined;
  /** State of what was read that can change by itself. */
  readonly tokens: ReadonlyMap<string, string | undefined>;
}

/** A question that is open, and the open questions that its own answer waits for. */
interface Waiting {
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
  readonly #around: Surroundings;
  readonly #facet: F;
  readonly #ask: Ask<F>;
  readonly #kept = new Map<string, Kept<Facets[F]>>();
  /** Keys of what is kept for one scope only. */
  readonly #keptFor = new ByScope<string>();
  readonly #asked = new Map<string, Asked<Facets[F]>>();
  #audience: Audience | undefined;

  constructor(registration: Registration, facet: F, ask: Ask<F>) {
    this.#registration = registration;
    this.#around = registration.around;
    this.#facet = facet;
    this.#ask = ask;
  }

  /** The kept answer, if nothing that it was made of has changed. Never waits. */
  peek(asker: Asker): Answer<Facets[F]> | undefined {
    const kept = this.#kept.get(this.#key(asker.viewer));
    return kept !== undefined && this.#holds(kept, asker) ? kept : undefined;
  }

  async get(asker: Asker, patience: Patience): Promise<Answer<Facets[F]>> {
    const { viewer, waiter } = asker;
    for (;;) {
      const fresh = this.peek(asker) ?? (await this.#unchanged(asker));
      if (fresh !== undefined) return fresh;
      const key = this.#key(viewer);
      const open = this.#asked.get(key);
      if (open !== undefined && waiter !== undefined && leadsTo(open, waiter)) {
        // Two that read each other: the one asked second answers without the first.
        return this.#alone(asker, patience);
      }
      const asked = open ?? this.#start(key, { ...asker, deadlineMs: patience.deadlineMs });
      waiter?.waitsFor.add(asked);
      const answer = await this.#wait(asked, patience);
      waiter?.waitsFor.delete(asked);
      if (answer === LATE) return this.#meanwhile(viewer, asked);
      // Made for this viewer, unless making it showed that it depends on more than was known: then look again.
      if (this.#kept.get(this.#key(viewer)) === answer || this.#registration.closed) return answer;
    }
  }

  /** What is kept, for whomever. */
  known(): readonly Answer<Facets[F]>[] {
    return [...this.#kept.values()];
  }

  /** Drops what was said to viewers at and below a scope. */
  forget(at: RegistrationScope): void {
    for (const key of this.#keptFor.within(at)) {
      const scope = this.#kept.get(key)?.scope;
      if (scope === undefined || !isBelow(scope, at)) continue;
      this.#kept.delete(key);
      this.#keptFor.delete(scope, key);
    }
  }

  #key(viewer: Viewer): string {
    const { scope, identity } = this.#audience ?? { scope: false, identity: false };
    return `${scope ? viewer.key : ''}\0${identity ? (viewer.identity?.id ?? '') : ''}`;
  }

  /** One that cannot tell is asked again each time. */
  #revision(failed?: (error: unknown) => void): number | string | undefined {
    const { capability } = this.#registration;
    if (!isChangeObservable(capability) || typeof capability.revision !== 'function')
      return undefined;
    try {
      return capability.revision();
    } catch (error) {
      failed?.(error);
      return Number.NaN;
    }
  }

  /** Its peers, if it is asked for this asker. */
  #peers({ asking = [], ...asker }: Asker): Peers & PeerTokens {
    return this.#around.peers({ ...asker, asking: [...asking, this.#registration] });
  }

  #holds(kept: Kept<Facets[F]>, asker: Asker): boolean {
    if (kept.failure !== undefined) {
      // A failure is asked again at every look, unless it said when.
      const retryAt = kept.failure.retryAt === undefined ? 0 : Date.parse(kept.failure.retryAt);
      if (!(retryAt > this.#around.now())) return false;
    }
    if (kept.revision !== this.#revision()) return false;
    if (kept.tokens.size === 0) return true;
    const peers = this.#peers({ ...asker, waiter: undefined });
    return [...kept.tokens].every(
      ([read, token]) => token !== undefined && token === tokenOf(read, asker.viewer, peers),
    );
  }

  /**
   * The kept answer, if all that keeps it from holding is that peers cannot vouch for themselves, and asking them shows that
   * they say the same as before.
   */
  async #unchanged(asker: Asker): Promise<Kept<Facets[F]> | undefined> {
    const kept = this.#kept.get(this.#key(asker.viewer));
    if (kept === undefined || kept.failure !== undefined || kept.tokens.size === 0)
      return undefined;
    if (kept.revision !== this.#revision()) return undefined;
    const peers = this.#peers(asker);
    for (const [read, token] of kept.tokens) {
      if (isPeerFacet(read)) await peers.refresh(read);
      if (tokenOf(read, asker.viewer, peers) !== token) return undefined;
    }
    return kept;
  }

  #start(key: string, asker: Asker): Asked<Facets[F]> {
    const { viewer } = asker;
    const registration = this.#registration;
    const around = this.#around;
    if (registration.activated === 0) registration.activated = around.next();
    const until = untilAnyOf(registration.gone);
    const waitsFor = new Set<Waiting>();
    const asked: Asked<Facets[F]> = {
      key,
      waitsFor,
      since: around.now(),
      end: (reason) => until.stop.end(reason),
      waiting: 0,
      abandoned: false,
      answer: this.#make({ ...asker, waiter: { waitsFor } }, until.stop).then((made) => {
        until.release();
        // Given up meanwhile: a newer question may have been answered already.
        if (this.#asked.get(key) !== asked) return made;
        this.#asked.delete(key);
        this.#learn(made.reads);
        const kept = this.#settle(viewer, made);
        if (asked.abandoned) around.late(registration, this.#facet);
        return kept;
      }),
    };
    this.#asked.set(key, asked);
    return asked;
  }

  async #make(asker: Asker, until: Stop): Promise<Made<Facets[F]>> {
    const { viewer } = asker;
    const { id } = this.#registration;
    const peers = this.#peers(asker);
    const context = new TrackedContext(viewer, peers, until.signal);
    const { reads, reported: problems } = context;
    const revision = this.#revision((error) => context.report(problemFrom(id, error)));
    const made = { revision, reads, problems, serial: this.#around.next() };
    // How what was read stood when it was read: peers as they were handed out, state as it is after the answer.
    const tokens = () =>
      new Map(
        [...reads]
          .filter((read) => isPeerFacet(read) || read === IDS || read.startsWith(STATE))
          .map((read) => [read, tokenOf(read, viewer, peers)]),
      );
    try {
      until.signal.throwIfAborted();
      // Nobody waits for a source that does not notice that it was aborted.
      const value = (await waitFor(this.#ask(context), Infinity, until)) as Facets[F];
      return { ...made, tokens: tokens(), value };
    } catch (error) {
      const since =
        this.#kept.get(this.#key(viewer))?.failure?.since ??
        new Date(this.#around.now()).toISOString();
      return { ...made, tokens: tokens(), failure: problemFrom(id, error, { since }) };
    }
  }

  /** An answer that is not kept: for one that is itself waited for. */
  async #alone(
    { viewer, asking }: Asker,
    { until, deadlineMs }: Patience,
  ): Promise<Answer<Facets[F]>> {
    const own = untilAnyOf(until, this.#registration.gone);
    try {
      return await this.#make({ viewer, deadlineMs, ...(asking && { asking }) }, own.stop);
    } finally {
      own.release();
    }
  }

  #learn(reads: ReadonlySet<string>): void {
    const peers = reads.has('skills') || reads.has('commands') || reads.has(IDS);
    const learnt: Audience = {
      scope: this.#audience?.scope === true || peers || reads.has('scope') || reads.has('state'),
      identity: this.#audience?.identity === true || peers || reads.has('identity'),
    };
    const known = this.#audience;
    if (known?.scope === learnt.scope && known.identity === learnt.identity) return;
    this.#audience = learnt;
    // kept for the wrong audience
    this.#kept.clear();
    this.#keptFor.clear();
  }

  /** Keeps an answer, under the number of the one before if it says the same. */
  #settle(viewer: Viewer, made: Made<Facets[F]>): Kept<Facets[F]> {
    const key = this.#key(viewer);
    const before = this.#kept.get(key);
    const said = before === undefined ? made : continued(before, made);
    const ownScope = this.#audience?.scope === true;
    const kept = ownScope ? { ...said, scope: viewer.scope } : said;
    // What was said to a view that has ended would be kept for a scope that may have ended with it.
    const isOver = this.#registration.closed || (ownScope && viewer.ended.isOver);
    if (isOver) return kept;
    this.#kept.set(key, kept);
    if (ownScope) this.#keptFor.add(viewer.scope, key);
    return kept;
  }

  async #wait(
    asked: Asked<Facets[F]>,
    { deadlineMs, until }: Patience,
  ): Promise<Kept<Facets[F]> | typeof LATE> {
    asked.waiting++;
    try {
      const left = asked.since + deadlineMs - this.#around.now();
      const answer = await waitFor(asked.answer, left, until);
      if (answer === LATE) asked.abandoned = true;
      return answer;
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
  #meanwhile(viewer: Viewer, { since }: Asked<Facets[F]>): Answer<Facets[F]> {
    const before = this.#kept.get(this.#key(viewer));
    if (before?.value !== undefined)
      return { serial: before.serial, value: before.value, problems: before.problems };
    const { id } = this.#registration;
    const text = `"${id}" has not answered yet (${this.#facet}); it joins when it does.`;
    const failure = problemFrom(id, new PatchbayError('source-slow', text), {
      since: new Date(since).toISOString(),
    });
    return { serial: -since, failure, problems: [] };
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

const IDS = 'ids';
const STATE = 'state:';
const isPeerFacet = (read: string): read is 'skills' | 'commands' =>
  read === 'skills' || read === 'commands';

/** How something that was read stands. */
function tokenOf(read: string, viewer: Viewer, peers: PeerTokens): string | undefined {
  if (isPeerFacet(read)) return peers.token(read);
  if (read === IDS) return JSON.stringify(peers.ids());
  const key = read.slice(STATE.length);
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

  /** What was answered of a kind, for whomever, as far as it was asked for. */
  known<F extends Facet>(facet: F): readonly Answer<Facets[F]>[] {
    return this.#byFacet[facet]?.known() ?? [];
  }

  /** See {@link FacetAnswers.forget}. */
  forget(at: RegistrationScope): void {
    for (const answers of Object.values(this.#byFacet)) answers.forget(at);
  }
}

type Ask<F extends Facet> = (context: CompileContext) => Promise<Facets[F]>;

/** How to ask a capability for a facet; `undefined` if it has none. */
function askerOf<F extends Facet>(facet: F, { capability, id }: Registration): Ask<F> | undefined {
  const ask = methodFor(facet, capability);
  if (ask === undefined) return undefined;
  return async (context) => {
    const value = await ask(context);
    if (Array.isArray(value)) return value as Facets[F];
    const text = `"${id}" answered ${typeof value} instead of a list of ${facet}.`;
    throw new PatchbayError('source-failed', text, { source: id });
  };
}

const METHODS = {
  tools: 'tools',
  instructions: 'instructions',
  skills: 'listSkills',
  commands: 'listCommands',
  resources: 'listResources',
} as const;

function methodFor(
  facet: Facet,
  capability: AnyCapability,
): ((context: CompileContext) => unknown) | undefined {
  const method = METHODS[facet];
  const has = (name: keyof AnyCapability) => typeof capability[name] === 'function';
  if (facet === 'resources' && !isResourceProvider(capability)) return undefined;
  if (has(method)) return (context) => capability[method]!(context);
  if (facet !== 'tools' || !isToolSource(capability) || !has('listTools')) return undefined;
  const known = new WeakMap<ToolDefinition, Tool>();
  return async (context) =>
    toolsFromSource(capability.id, capability, await capability.listTools(context), known);
}
