import {
  IdleTimer,
  Stopper,
  PatchbayError,
  problemFrom,
  type ActiveSkill,
  type CallOptions,
  type InstructionBlock,
  type Problem,
  type Scope,
  type ToolResult,
  type TurnContext,
  type TurnContribution,
  type TurnInput,
  type PrepareInput,
  type TurnStep,
  type TurnView,
} from '@patchbay/protocols';

import { actingSkills } from './acting.ts';
import { callOffered, decide, unavailable, type Caller } from './call.ts';
import type { Compiler, CompilerHost } from './compiler.ts';
import { matchesAny } from './pattern.ts';
import type { Registration } from './registration.ts';
import type { OfferedTool } from './snapshot.ts';
import { TrackedContext } from './tracked-context.ts';
import type { Viewer } from './viewer.ts';
import { LATE, untilAnyOf, waitFor } from './waiting.ts';

/** What a turn needs of its view. */
export interface TurnHost extends CompilerHost {
  readonly turnIdleMs: number;
  /** The view's own compiler, or one for the turn's scope where something is registered for this very turn. */
  compilerFor(turnId: string): Compiler;
  ended(turn: Turn): Promise<void>;
}

/** One turn of one view. */
export class Turn implements TurnView {
  readonly turnId: string;
  readonly scope: Scope;
  readonly #viewer: Viewer;
  readonly #host: TurnHost;
  #userText: string | undefined;
  #step: TurnStep | undefined;
  #hidden: readonly string[] = [];
  #compiled: object | undefined;
  #contribution = '';
  #revision = 0;
  readonly #idle: IdleTimer;
  #closing: Promise<void> | undefined;
  #release: (() => void) | undefined;
  readonly #life = new Stopper();
  readonly #caller: Caller;
  /** Calls in flight: the idle limit does not count while there are any. */
  #busy = 0;

  constructor(turnId: string, viewer: Viewer, input: TurnInput, host: TurnHost) {
    this.turnId = turnId;
    this.#viewer = viewer;
    this.scope = viewer.scope;
    this.#host = host;
    this.#caller = {
      viewer,
      rules: host.rules,
      acting: () => actingSkills(viewer, host.visible(viewer.scope), this.#step?.active),
    };
    viewer.activity.begin();
    this.#idle = new IdleTimer(
      host.turnIdleMs,
      () => this.#busy === 0,
      () => this.#closeUnasked(),
    );
    this.join(input);
    this.#idle.touch();
  }

  /** Somebody else began the same turn: its signal and text count too. */
  join(input: TurnInput): void {
    if (input.userText !== undefined) this.#userText = input.userText;
    const { signal } = input;
    if (signal === undefined) return;
    const onAbort = () => this.#closeUnasked();
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    const before = this.#release;
    this.#release = () => {
      before?.();
      signal.removeEventListener('abort', onAbort);
    };
  }

  current(): TurnStep | undefined {
    return this.#step;
  }

  async prepare(input: PrepareInput = {}): Promise<TurnStep> {
    this.#work();
    try {
      return (await waitFor(this.#prepare(input), Infinity, this.#life)) as TurnStep;
    } finally {
      this.#rest();
    }
  }

  async #prepare(input: PrepareInput): Promise<TurnStep> {
    if (input.userText !== undefined) this.#userText = input.userText;
    const wait = {
      deadlineMs: this.#host.compileDeadlineMs,
      ...(input.signal === undefined ? {} : { signal: input.signal }),
    };
    const compiled = await this.#host.compilerFor(this.turnId).compile(wait);
    const problems: Problem[] = [];
    const contributions = await this.#contributions(problems, input);
    const hidden = contributions.flatMap(({ hide }) => hide ?? []);
    this.#hidden = hidden;
    const added = contributions.flatMap(({ instructions }) => instructions ?? []);
    const active = contributions.flatMap(({ active: skills }) => skills ?? []);
    return this.#put(compiled, { hidden, added, active, problems });
  }

  readonly callTool = async (
    name: string,
    args: unknown,
    options: CallOptions = {},
  ): Promise<ToolResult> => {
    this.#work();
    try {
      const { signal } = options;
      const offered = this.#known(name) ?? (await this.#find(name, signal));
      if (offered === undefined) throw unavailable(name);
      if (matchesAny(this.#hidden, name)) {
        throw new PatchbayError(
          'tool-hidden',
          `The tool "${name}" may not be used at the moment.`,
          {
            details: { tool: name },
          },
        );
      }
      return await callOffered(offered, args, this.#caller, options);
    } finally {
      this.#rest();
    }
  };

  readonly approval: TurnView['approval'] = async (name, args) => {
    const offered = this.#known(name) ?? (await this.#find(name));
    return offered === undefined ? 'allow' : decide(offered, args, this.#caller);
  };

  #known(name: string): OfferedTool | undefined {
    return this.#host.compilerFor(this.turnId).known(name);
  }

  async #find(name: string, signal?: AbortSignal): Promise<OfferedTool | undefined> {
    const deadlineMs = this.#host.compileDeadlineMs;
    try {
      const compiler = this.#host.compilerFor(this.turnId);
      return await compiler.find(name, { deadlineMs, ...(signal && { signal }) });
    } catch (cause) {
      if (signal?.aborted !== true) throw cause;
      const message = `The call of ${name} was aborted by its caller.`;
      throw new PatchbayError('aborted', message, { cause });
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Its signal or the idle limit ended it: nobody is there to be told what went wrong. */
  #closeUnasked(): void {
    this.close().catch((error: unknown) => this.#host.problem(problemFrom(this.turnId, error)));
  }

  async #end(): Promise<void> {
    this.#idle.stop();
    this.#viewer.activity.end();
    this.#release?.();
    this.#life.endBy(() => this.#over());
    await this.#host.ended(this);
  }

  /** Something is under way in it, until {@link #rest}. */
  #work(): void {
    if (this.#closing !== undefined) throw this.#over();
    this.#busy++;
  }

  #over(): PatchbayError {
    return new PatchbayError('closed', `The turn "${this.turnId}" has ended.`);
  }

  #rest(): void {
    this.#busy--;
    this.#idle.touch();
  }

  async #contributions(
    problems: Problem[],
    input: PrepareInput,
  ): Promise<readonly TurnContribution[]> {
    const asked = this.#host
      .visible(this.#viewer.scope)
      .filter(({ capability }) => typeof capability.prepareTurn === 'function');
    const answers = await Promise.all(
      asked.map(async (registration) => {
        try {
          return await this.#askOne(registration, problems, input);
        } catch (error) {
          problems.push(problemFrom(registration.id, error));
          return undefined;
        }
      }),
    );
    input.signal?.throwIfAborted();
    return answers.filter((answer) => answer !== undefined);
  }

  async #askOne(
    registration: Registration,
    problems: Problem[],
    { signal, isSaid }: PrepareInput,
  ): Promise<TurnContribution | undefined> {
    const until = untilAnyOf(signal, this.#life);
    const peers = this.#host.peers({ viewer: this.#viewer, asking: [registration] });
    const context = new TrackedTurn(this.#viewer, peers, until.stop.signal, {
      turnId: this.turnId,
      userText: this.#userText,
      isSaid,
    });
    const ms = this.#host.compileDeadlineMs;
    try {
      const asked = registration.capability.prepareTurn!(context);
      const contribution = await waitFor(asked, ms, until.stop);
      problems.push(...context.reported);
      if (contribution !== LATE) return contribution;
      const text = `"${registration.id}" took more than ${ms / 1000} s to prepare the turn; it goes on without it.`;
      const late = new PatchbayError('source-slow', text);
      until.stop.end(late);
      throw late;
    } finally {
      until.release();
    }
  }

  #put(
    compiled: Omit<TurnStep, 'active' | 'revision'>,
    turn: {
      readonly hidden: readonly string[];
      readonly added: readonly InstructionBlock[];
      readonly active: readonly ActiveSkill[];
      readonly problems: readonly Problem[];
    },
  ): TurnStep {
    const contribution = JSON.stringify(turn);
    if (
      this.#step !== undefined &&
      this.#compiled === compiled &&
      this.#contribution === contribution
    )
      return this.#step;
    this.#compiled = compiled;
    this.#contribution = contribution;
    const { hidden, added, active } = turn;
    const ofKind = (kind: 'static' | 'dynamic') =>
      [...compiled.instructions, ...added].filter(
        (block) => (block.kind === 'static') === (kind === 'static'),
      );
    this.#step = Object.freeze({
      revision: ++this.#revision,
      tools:
        hidden.length === 0
          ? compiled.tools
          : Object.freeze(
              compiled.tools.filter(({ definition }) => !matchesAny(hidden, definition.name)),
            ),
      instructions:
        added.length === 0
          ? compiled.instructions
          : Object.freeze([...ofKind('static'), ...ofKind('dynamic')]),
      active: Object.freeze(active),
      problems: Object.freeze([...compiled.problems, ...turn.problems]),
    });
    return this.#step;
  }
}

class TrackedTurn extends TrackedContext implements TurnContext {
  readonly turnId: string;
  readonly userText: string | undefined;
  readonly isSaid: TurnContext['isSaid'];

  constructor(
    viewer: Viewer,
    peers: ReturnType<TurnHost['peers']>,
    signal: AbortSignal,
    about: Pick<TurnContext, 'turnId' | 'userText' | 'isSaid'>,
  ) {
    super(viewer, peers, signal);
    this.turnId = about.turnId;
    this.userText = about.userText;
    this.isSaid = about.isSaid;
  }
}
