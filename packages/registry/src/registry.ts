import {
  compositionOf,
  describeScope,
  missingMethods,
  normalizeScope,
  PatchbayError,
  problemFrom,
  scopeCovers,
  type ApprovalPolicy,
  type ArgumentValidator,
  type AnyCapability,
  type Capability,
  type ChangeEvent,
  type ComposedCapability,
  type ExtensionView,
  type Identity,
  type Problem,
  type RegistrationScope,
  type Scope,
  type TraceListener,
  type SessionState,
} from '@patchbay/protocols';

import { Activity } from './activity.ts';
import type { Facet } from './answers.ts';
import { by } from './by.ts';
import { ByScope } from './by-scope.ts';
import { ChangeHub } from './change-hub.ts';
import { PeerAnswers } from './peers.ts';
import { Registration } from './registration.ts';
import { isBelow, ScopeStore } from './scope-store.ts';
import { VersionedState } from './session-state.ts';
import { closeInOrder, inClosingOrder } from './shutdown.ts';
import { Snapshots } from './snapshot.ts';
import { Told } from './told.ts';
import { ToolPins } from './tool-pins.ts';
import { inspect, type InspectedCapability } from './inspection.ts';
import { OpenViews } from './open-views.ts';
import { View, type ViewHost } from './view.ts';
import type { NameFilter, ViewFilter } from './viewer.ts';
import { emitWarning } from './warning.ts';

export interface RegistryOptions {
  /** Asked before every call. Default: everything may run. */
  readonly approval?: ApprovalPolicy;
  /**
   * Tools that run what they are given (a shell, an interpreter), by the name that a model sees: `{ include: ['shell__*'] }`.
   * They are asked for, whatever the policy allows, while the model acts on a skill of a server for which nobody approved
   * them. Default: none.
   */
  readonly executing?: NameFilter | readonly NameFilter[];
  /**
   * Tools that are not what a session saw first (another description, schema or annotation) are a problem, `tool-changed`,
   * and asked for until somebody approves a call. What was seen is kept in the session's state. Default false.
   */
  readonly pinTools?: boolean;
  /** Checks arguments before every call. Default: the one that an adapter brings; without one, the source's own check. */
  readonly validator?: ArgumentValidator;
  /** Told of every problem once, for as long as it lasts. Default: the first one of each source is a process warning. */
  readonly onProblem?: (problem: Problem) => void;
  /** Told of every call, of compiles that ask somebody, and of changes, with times. */
  readonly onTrace?: TraceListener;
  /** How long a compile inside a run waits for a source that is new, in milliseconds. Default 5,000. */
  readonly compileDeadlineMs?: number;
  /** How long any other compile, and a question by URI or command, waits for a source. Default 60,000. */
  readonly sourceTimeoutMs?: number;
  /** A turn that was not used for so long ends. Default 600,000. */
  readonly turnIdleMs?: number;
  /** How long each capability may take to close; everything together at most four times as long. Default 5,000. */
  readonly closeTimeoutMs?: number;
  /** Compositions that are deeper, the outermost counted, work and have a problem that says so. Default 3. */
  readonly maxCompositionDepth?: number;
}

export interface ViewOptions extends ViewFilter {
  /** For whom calls are made. A session belongs to the identity that looked first. */
  readonly identity?: Identity;
}

/** A registration. Closing it takes the capability out and disposes it; twice is harmless. */
export interface RegistrationHandle extends AsyncDisposable, Disposable {
  readonly id: string;
  readonly scope: RegistrationScope;
  /** @throws PatchbayError if the capability failed to close, or took too long. It is out all the same. */
  close(): Promise<void>;
}

/** See {@link ExtensionRegistry.activity}. */
export interface SessionActivity {
  readonly running: number;
  readonly lastUsedAt: number;
}

const DEFAULTS = {
  compileDeadlineMs: 5_000,
  sourceTimeoutMs: 60_000,
  turnIdleMs: 600_000,
  closeTimeoutMs: 5_000,
  maxCompositionDepth: 3,
};

/**
 * Everything that agents can be extended with, and who sees it. Registering does no I/O. (RFC-0051 "ExtensionRegistry")
 */
export class ExtensionRegistry implements AsyncDisposable {
  readonly #options: RegistryOptions & typeof DEFAULTS;
  readonly #store = new ScopeStore();
  readonly #sessions = new Map<string | undefined, SessionRecord>();
  readonly #owners = new Map<string, Identity>();
  readonly #views = new OpenViews();
  /** Taken out, but not yet closed. */
  readonly #ending = new ByScope<Registration>();
  readonly #told = new Told();
  readonly #hub: ChangeHub;
  readonly #host: ViewHost;
  #serial = 0;
  #closing: Promise<void> | undefined;
  /** What each scope saw at one generation of the store. */
  #seen = { generation: -1, byScope: new Map<string, readonly Registration[]>() };

  constructor(options: RegistryOptions = {}) {
    const given = Object.fromEntries(
      Object.entries(options).filter(([, value]) => value !== undefined),
    );
    this.#options = { ...DEFAULTS, ...given };
    this.#hub = new ChangeHub({
      visible: (scope) => this.#visible(scope),
      sees: (scope, registration) => this.#sees(scope, registration),
      standsAlone: (registration) => this.#store.standsAlone(registration),
      failed: (registration, error) => this.#problem(problemFrom(registration.id, error)),
      trace: this.#options.onTrace,
    });
    this.#host = this.#makeHost();
  }

  /**
   * Makes a capability, with its children, visible at a scope and below. Default: everywhere.
   * @throws CircularCompositionError if it contains itself
   * @throws PatchbayError `invalid-scope`, `invalid-id`, `duplicate-id` (an id is taken at this very scope), `closed`
   */
  register(capability: AnyCapability, scope?: RegistrationScope): RegistrationHandle {
    this.#assertOpen();
    const at = normalizeScope(scope);
    assertId(capability);
    const parts = compositionOf(capability);
    for (const { capability: part } of parts) {
      assertId(part);
      if (this.#store.find(part.id, at) === undefined) continue;
      throw new PatchbayError(
        'duplicate-id',
        `"${part.id}" is already registered at ${describeScope(at)}. Close that registration first, or use another id.`,
        { source: part.id },
      );
    }
    const registrations: Registration[] = [];
    for (const part of parts) {
      const parent = registrations.find((r) => r.capability === part.parent);
      const problems = [...incomplete(part.capability), ...this.#tooDeep(part)];
      registrations.push(
        new Registration(part.capability, at, ++this.#serial, problems, parent, this.#host),
      );
    }
    for (const registration of registrations) this.#store.add(registration);
    for (const registration of registrations) {
      for (const problem of registration.problems) this.#problem(problem);
      this.#hub.changed(registration, 'registered');
    }
    const { id } = capability;
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= this.#close(registrations));
    return {
      id,
      scope: at,
      close,
      [Symbol.asyncDispose]: close,
      [Symbol.dispose]: () =>
        void close().catch((error: unknown) => this.#problem(problemFrom(id, error))),
    };
  }

  /**
   * What one scope sees, live.
   * @throws PatchbayError `invalid-scope`, `invalid-id` (of the identity), `identity-mismatch` (the session belongs to another identity), `closed`
   */
  view(scope?: Scope, options: ViewOptions = {}): ExtensionView {
    this.#assertOpen();
    const at = normalizeScope(scope);
    const { identity } = options;
    if (identity !== undefined && (typeof identity.id !== 'string' || identity.id === ''))
      throw new PatchbayError('invalid-id', 'An identity needs an id, a non-empty string.');
    if (at.session !== undefined) this.#bind(at.session, identity);
    const { tools, skills } = options;
    const { state, activity } = this.#session(at.session);
    const view = new View(
      { scope: at, identity, filter: { tools, skills }, state, activity },
      this.#host,
    );
    this.#views.add(view);
    return view;
  }

  /** Everything visible at a scope that `is` says yes to, sorted by id: `query({ session }, isSkillResource)`. */
  query<T extends Capability>(
    scope: Scope,
    is: (capability: Capability) => capability is T,
  ): readonly T[] {
    return this.#visible(normalizeScope(scope)).flatMap(({ capability }) =>
      is(capability) ? [capability] : [],
    );
  }

  /** Changes of everything that is or becomes visible at a scope. (RFC-0051 "merge_change_streams") */
  changes(
    scope?: Scope,
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncIterable<ChangeEvent> {
    return this.#hub.listen(normalizeScope(scope), options.signal);
  }

  /** What a session remembers; without a session, what the program does. */
  state(scope: { readonly session?: string } = {}): SessionState {
    return this.#session(sessionOf(scope)).state;
  }

  /** What is going on in a session: open turns, compiles and calls, and when it was last used (milliseconds since 1970). */
  activity(scope: { readonly session?: string } = {}): SessionActivity {
    const { running, lastUsedAt } = this.#session(sessionOf(scope)).activity;
    return { running, lastUsedAt };
  }

  /** Everything registered, whoever sees it: by scope, then by id. */
  inspect(): readonly InspectedCapability[] {
    return this.#store
      .all()
      .toSorted(
        by(
          ({ depth }) => depth,
          ({ id }) => id,
        ),
      )
      .map((registration) => {
        const same = this.#store
          .visible(registration.scope)
          .find(({ registration: { id } }) => id === registration.id);
        const shadowed = same?.registration === registration ? same.shadowed : [];
        return inspect(registration, {
          shadows: shadowed.map(({ scope }) => describeScope(scope)),
          hidden: !this.#visible(registration.scope).includes(registration),
        });
      });
  }

  /**
   * Ends everything at and below a scope: views, turns, capabilities (deepest first, in reverse order of first use),
   * and what the session or the agent remembered. Without a scope: everything, for good.
   * @throws PatchbayError whose `cause` is an AggregateError, when capabilities failed to close. They are out all the same.
   */
  close(scope?: RegistrationScope): Promise<void> {
    const at = normalizeScope(scope);
    if (Object.keys(at).length > 0) return this.#end(at);
    return (this.#closing ??= this.#end(at));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(at: RegistrationScope): Promise<void> {
    const ending = [...this.#ending.within(at)].filter(({ scope }) => isBelow(scope, at));
    const views = this.#views.below(at);
    const seen = this.#store.seenFrom(at);
    const closing = this.#close([...this.#store.below(at), ...ending]);
    if (at.agent === undefined && at.turn === undefined) {
      if (at.session === undefined) this.#sessions.clear();
      else this.#sessions.delete(at.session);
      if (at.session !== undefined) this.#owners.delete(at.session);
    } else if (at.session !== undefined && at.agent !== undefined && at.turn === undefined) {
      this.#sessions.get(at.session)?.state.forgetAgent(at.agent);
      // Sub-agents come and go: what each of them saw is not kept until the next registration.
      this.#seen = { generation: -1, byScope: new Map() };
    }
    this.#hub.end(at);
    const [closed] = await Promise.allSettled([closing, ...views.map((view) => view.close())]);
    for (const { answers, capability, id } of seen) {
      answers.forget(at);
      if (!this.#store.has(capability)) continue;
      try {
        capability.scopeEnded?.(at);
      } catch (error) {
        this.#problem(problemFrom(id, error));
      }
    }
    if (closed.status === 'rejected') throw closed.reason;
  }

  /** Takes them out at once, and waits until they have closed. */
  async #close(registrations: readonly Registration[]): Promise<void> {
    const open = registrations.filter((registration) => !registration.closed);
    for (const registration of open) {
      this.#store.delete(registration);
      this.#told.forget(registration.id);
      this.#ending.add(registration.scope, registration);
    }
    // A capability that is registered elsewhere too lives on there.
    closeInOrder(open, this.#options.closeTimeoutMs, (capability) => this.#store.has(capability));
    for (const registration of open) this.#hub.changed(registration, 'unregistered');
    const ended = await Promise.all(inClosingOrder(registrations).map(({ ended: end }) => end));
    for (const registration of open) this.#ending.delete(registration.scope, registration);
    const errors = ended.filter((error) => error !== undefined);
    if (errors.length === 1) throw errors[0]!;
    if (errors.length > 1) {
      const list = errors.map(({ message }) => message).join(' ');
      throw new PatchbayError(
        'source-failed',
        `${errors.length} capabilities did not close: ${list}`,
        { cause: new AggregateError(errors) },
      );
    }
  }

  #makeHost(): ViewHost {
    const { approval, executing, pinTools, validator, onTrace: trace } = this.#options;
    const { sourceTimeoutMs, compileDeadlineMs, turnIdleMs } = this.#options;
    const host: ViewHost = {
      rules: {
        approval,
        executing,
        validator,
        trace,
        pins: pinTools === true ? new ToolPins() : undefined,
      },
      snapshots: new Snapshots(),
      sourceTimeoutMs,
      compileDeadlineMs,
      turnIdleMs,
      now: () => Date.now(),
      next: () => ++this.#serial,
      visible: (scope) => this.#visible(scope),
      peers: (asker) =>
        new PeerAnswers(asker, () => this.#visible(asker.viewer.scope), {
          deadlineMs: peersDeadline(asker.deadlineMs ?? sourceTimeoutMs),
        }),
      late: (registration, facet) =>
        this.#hub.tell(registration, { capability: registration.id, kind: KIND_OF[facet] }),
      problem: (problem) => this.#problem(problem),
      hasTurn: (session, turn) => this.#store.hasTurn(session, turn),
      changes: (scope, ...until) => this.#hub.listen(scope, ...until),
      turnEnded: (scope) => this.#end(scope),
      viewClosed: (view) => this.#views.delete(view),
    };
    return host;
  }

  #visible(scope: Scope): readonly Registration[] {
    const { generation } = this.#store;
    if (this.#seen.generation !== generation) this.#seen = { generation, byScope: new Map() };
    const key = this.#store.sameAs(scope);
    let visible = this.#seen.byScope.get(key);
    if (visible === undefined) {
      visible = this.#store.visible(scope).map(({ registration }) => registration);
      if (scope.turn === undefined) this.#seen.byScope.set(key, visible);
    }
    return this.#store.mayHide
      ? visible.filter((registration) => this.#shows(registration, scope))
      : visible;
  }

  /** The same as being among those that are visible, without putting them together where only this one counts. */
  #sees(scope: Scope, registration: Registration): boolean {
    const { scope: at, parent } = registration;
    if (!this.#store.standsAlone(registration)) return this.#visible(scope).includes(registration);
    return scopeCovers(at, scope) && (parent === undefined || this.#sees(scope, parent));
  }

  #tooDeep({ capability, chain }: ComposedCapability): readonly Problem[] {
    const limit = this.#options.maxCompositionDepth;
    // Said of the first that is too deep, not of what is in it.
    if (chain.length !== limit + 1) return [];
    const text = `"${capability.id}" is composed ${chain.length} deep (${chain.join(' > ')}), more than ${limit}. It works; register it by itself, or raise \`maxCompositionDepth\`.`;
    const problem = problemFrom(capability.id, new PatchbayError('composition-depth', text));
    return [{ ...problem, severity: 'warning' }];
  }

  /** A capability may hide itself, and its children with it. One that cannot say stays hidden. */
  #shows({ capability, id, parent }: Registration, scope: Scope): boolean {
    if (parent !== undefined && !this.#shows(parent, scope)) return false;
    try {
      return capability.visible === undefined || capability.visible(scope);
    } catch (error) {
      this.#problem(problemFrom(id, error));
      return false;
    }
  }

  #session(session: string | undefined): SessionRecord {
    const record = this.#sessions.get(session) ?? {
      state: new VersionedState(),
      activity: new Activity(),
    };
    this.#sessions.set(session, record);
    return record;
  }

  #bind(session: string, identity: Identity | undefined): void {
    const owner = this.#owners.get(session);
    if (identity === undefined) return;
    if (owner !== undefined && owner.id !== identity.id) {
      throw new PatchbayError(
        'identity-mismatch',
        `The session ${JSON.stringify(session)} belongs to another identity. Use a session id of its own for each identity.`,
      );
    }
    this.#owners.set(session, identity);
  }

  #problem(problem: Problem): void {
    const news = this.#told.note(problem);
    const { onProblem } = this.#options;
    if (news === 'known') return;
    if (onProblem !== undefined) onProblem(problem);
    else if (news === 'first') emitWarning(problem);
  }

  #assertOpen(): void {
    if (this.#closing !== undefined)
      throw new PatchbayError('closed', 'The registry was closed; make another one.');
  }
}

interface SessionRecord {
  readonly state: VersionedState;
  readonly activity: Activity;
}

function sessionOf({ session }: { readonly session?: string }): string | undefined {
  return normalizeScope(session === undefined ? {} : { session }).session;
}

/** Who asks its peers answers in time, also where one of them does not: it is waited for a little longer than they are. */
const peersDeadline = (deadlineMs: number): number => Math.max(deadlineMs / 2, deadlineMs - 1_000);

const KIND_OF: Readonly<Record<Facet, string>> = {
  tools: 'tools_changed',
  instructions: 'instructions_changed',
  skills: 'skills_changed',
  commands: 'commands_changed',
  resources: 'resources_changed',
};

function assertId(capability: Capability): void {
  const id: unknown = capability?.id;
  if (typeof id === 'string' && id !== '') return;
  throw new PatchbayError(
    'invalid-id',
    `A capability needs an id, a non-empty string; this one has ${JSON.stringify(id)}.`,
  );
}

/** What of it can be seen to be wrong without asking it anything. */
function incomplete(capability: AnyCapability): readonly Problem[] {
  const { id, uriSchemes = [] } = capability;
  const lacks = missingMethods(capability).map(
    ({ protocol, method }) =>
      new PatchbayError(
        'partial-protocol',
        `"${id}" looks like a ${protocol} but has no ${method}(); add it, or remove the rest of the protocol.`,
      ),
  );
  const unroutable = uriSchemes
    .filter((scheme) => !/^(?!skill$)[a-z][a-z0-9+.-]*$/i.test(scheme))
    .map(
      (scheme) =>
        new PatchbayError(
          'unknown-scheme',
          `"${id}" cannot answer for the URI scheme ${JSON.stringify(scheme)}. A scheme is letters, digits, +, - and ., without a colon; skill:// is for skills.`,
        ),
    );
  return [...lacks, ...unroutable].map((error) => problemFrom(id, error));
}
