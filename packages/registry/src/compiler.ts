import {
  traced,
  type CompiledView,
  type CompileOptions,
  type Problem,
  type Scope,
} from '@patchbay/protocols';

import type { Patience, Surroundings } from './answers.ts';
import { actingSkills } from './acting.ts';
import { callOffered, decide, unavailable, type Caller, type CallRules } from './call.ts';
import type { Registration } from './registration.ts';
import {
  fingerprintOf,
  type OfferedTool,
  type Part,
  type Snapshot,
  type Snapshots,
} from './snapshot.ts';
import type { Viewer } from './viewer.ts';
import { untilAnyOf } from './waiting.ts';

/** What a compiler needs of the registry. */
export interface CompilerHost extends Surroundings {
  readonly rules: CallRules;
  readonly snapshots: Snapshots;
  /** How long to wait for one source where others have answered, in milliseconds. */
  readonly compileDeadlineMs: number;
  /** Without those that hide themselves. Sorted by id. */
  visible(scope: Scope): readonly Registration[];
  /** May be told the same again. */
  problem(problem: Problem): void;
}

/** Puts together what one viewer sees, and again only as far as something changed. */
export class Compiler {
  readonly viewer: Viewer;
  readonly #host: CompilerHost;
  #snapshot: Snapshot | undefined;
  #compiled: CompiledView | undefined;
  #revision = 0;

  constructor(viewer: Viewer, host: CompilerHost) {
    this.viewer = viewer;
    this.#host = host;
  }

  current(): CompiledView | undefined {
    return this.#compiled;
  }

  async compile(options: CompileOptions = {}): Promise<CompiledView> {
    await this.snapshot(options);
    return this.#compiled!;
  }

  async snapshot(options: CompileOptions = {}): Promise<Snapshot> {
    const visible = this.#host.visible(this.viewer.scope);
    const parts =
      this.#peek(visible) ??
      (await traced(
        this.#host.rules.trace,
        () => this.#ask(visible, options),
        (outcome) => ({
          type: 'compile',
          scope: this.viewer.scope,
          sources: visible.length,
          ...outcome,
        }),
      ));
    return this.#put(parts);
  }

  /** The tool of this name, if it is certain without asking that it is the newest. */
  known(name: string): OfferedTool | undefined {
    const known = this.#snapshot?.byName.get(name);
    return known !== undefined && this.#stillOffers(known) ? known : undefined;
  }

  /** The newest tool of this name: only what its own source changed is asked again. */
  async find(name: string, options: CompileOptions): Promise<OfferedTool | undefined> {
    return this.known(name) ?? (await this.snapshot(options)).byName.get(name);
  }

  #stillOffers({ registration }: OfferedTool): boolean {
    if (registration.closed) return false;
    const answer = registration.answers.of('tools')?.peek(this);
    return (
      answer?.value !== undefined && this.#host.visible(this.viewer.scope).includes(registration)
    );
  }

  /** Everything, if nobody has to be asked. */
  #peek(visible: readonly Registration[]): readonly Part[] | undefined {
    const parts: Part[] = [];
    for (const registration of visible) {
      const { answers } = registration;
      const peek = <F extends 'tools' | 'instructions' | 'skills'>(facet: F) => {
        const of = answers.of(facet);
        return of === undefined ? 'none' : of.peek(this);
      };
      const tools = peek('tools');
      const instructions = tools === undefined ? undefined : peek('instructions');
      const skills = instructions === undefined ? undefined : peek('skills');
      if (tools === undefined || instructions === undefined || skills === undefined)
        return undefined;
      parts.push({
        registration,
        tools: tools === 'none' ? undefined : tools,
        instructions: instructions === 'none' ? undefined : instructions,
        skills: skills === 'none' ? undefined : skills,
      });
    }
    return parts;
  }

  async #ask(visible: readonly Registration[], options: CompileOptions): Promise<readonly Part[]> {
    const { stop, release } = untilAnyOf(options.signal, this.viewer.ended);
    const patience: Patience = {
      deadlineMs: options.deadlineMs ?? this.#host.sourceTimeoutMs,
      until: stop,
    };
    const asked = Promise.all(
      visible.map(async (registration) => {
        const { answers } = registration;
        const [tools, instructions, skills] = await Promise.all([
          answers.of('tools')?.get(this, patience),
          answers.of('instructions')?.get(this, patience),
          answers.of('skills')?.get(this, patience),
        ]);
        return { registration, tools, instructions, skills };
      }),
    );
    const parts = await asked.finally(release);
    return parts.filter(({ registration }) => !registration.closed);
  }

  #put(parts: readonly Part[]): Snapshot {
    const fingerprint = fingerprintOf(parts);
    if (this.#snapshot?.fingerprint === fingerprint) return this.#snapshot;
    const snapshot = this.#host.snapshots.of(parts, this.viewer, fingerprint);
    this.#snapshot = snapshot;
    this.#compiled = this.#compiledView(snapshot);
    const changed = this.#host.rules.pins?.look(snapshot.byName.values(), this.viewer.state) ?? [];
    for (const problem of [...snapshot.problems, ...changed]) this.#host.problem(problem);
    return snapshot;
  }

  #compiledView(snapshot: Snapshot): CompiledView {
    const { viewer } = this;
    const caller: Caller = {
      viewer,
      rules: this.#host.rules,
      acting: () => actingSkills(viewer, this.#host.visible(viewer.scope)),
    };
    const { tools, instructions, skills, problems, byName } = snapshot;
    return Object.freeze({
      revision: ++this.#revision,
      tools,
      instructions,
      skills,
      problems,
      callTool: async (name: string, args: unknown, options = {}) => {
        const offered = byName.get(name);
        if (offered === undefined || offered.registration.closed) throw unavailable(name);
        return callOffered(offered, args, caller, options);
      },
      approval: async (name: string, args: unknown) => {
        const offered = byName.get(name);
        return offered === undefined ? 'allow' : decide(offered, args, caller);
      },
    } satisfies CompiledView);
  }
}
