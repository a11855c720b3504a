import {
  Stopper,
  PatchbayError,
  type ChangeEvent,
  type CommandRouter,
  type CompiledView,
  type CompileOptions,
  type ExtensionView,
  type Identity,
  type ResourceView,
  type Scope,
  type TurnInput,
  type TurnView,
} from '@patchbay/protocols';

import { Compiler, type CompilerHost } from './compiler.ts';
import { ResourceRouter } from './resource-router.ts';
import { SlashCommands } from './slash-commands.ts';
import { Turn, type TurnHost } from './turn.ts';
import { makeViewer, type Viewer } from './viewer.ts';
import type { Until } from './waiting.ts';

/** What a view needs of the registry. */
export interface ViewHost extends CompilerHost {
  readonly turnIdleMs: number;
  hasTurn(session: string | undefined, turn: string): boolean;
  changes(scope: Scope, ...until: readonly Until[]): AsyncIterable<ChangeEvent>;
  /** Closes what was registered for one turn. */
  turnEnded(scope: Scope): Promise<void>;
  viewClosed(view: View): void;
}

/** One scope's window on the registry. */
export class View implements ExtensionView {
  readonly scope: Scope;
  readonly identity: Identity | undefined;
  readonly commands: CommandRouter;
  readonly resources: ResourceView;
  readonly #viewer: Viewer;
  readonly #host: ViewHost;
  readonly #compiler: Compiler;
  readonly #turns = new Map<string, { readonly turn: Turn; compiler?: Compiler }>();
  readonly #ended = new Stopper();
  #closing: Promise<void> | undefined;

  constructor(of: Omit<Viewer, 'key' | 'ended' | 'view'>, host: ViewHost) {
    const viewer = makeViewer({ ...of, ended: this.#ended, view: this });
    this.#viewer = viewer;
    this.#host = host;
    this.scope = viewer.scope;
    this.identity = viewer.identity;
    this.#compiler = new Compiler(viewer, host);
    this.commands = new SlashCommands(viewer, host);
    this.resources = new ResourceRouter(viewer, host, (options) => this.changes(options));
  }

  async compile(options?: CompileOptions): Promise<CompiledView> {
    this.#assertOpen();
    return this.#viewer.activity.during(() => this.#compiler.compile(options));
  }

  current(): CompiledView | undefined {
    return this.#compiler.current();
  }

  beginTurn(input: TurnInput = {}): TurnView {
    this.#assertOpen();
    const turnId = input.turnId ?? globalThis.crypto.randomUUID();
    if (turnId === '')
      throw new PatchbayError(
        'invalid-scope',
        'A turn id is a non-empty string; leave it out instead.',
      );
    const open = this.#turns.get(turnId);
    if (open !== undefined) {
      open.turn.join(input);
      return open.turn;
    }
    const { session } = this.scope;
    const scope = Object.freeze({
      ...this.scope,
      ...(session === undefined ? {} : { turn: turnId }),
    });
    const turn = new Turn(turnId, { ...this.#viewer, scope }, input, this.#turnHost());
    if (input.signal?.aborted !== true) this.#turns.set(turnId, { turn });
    return turn;
  }

  changes(options: { readonly signal?: AbortSignal } = {}): AsyncIterable<ChangeEvent> {
    return this.#host.changes(this.scope, options.signal, this.#ended);
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(): Promise<void> {
    this.#ended.endBy(() => new PatchbayError('closed', 'The view was closed.'));
    await Promise.all([...this.#turns.values()].map(({ turn }) => turn.close()));
    this.#host.viewClosed(this);
  }

  #assertOpen(): void {
    if (this.#closing !== undefined)
      throw new PatchbayError('closed', 'The view was closed; make another one.');
  }

  #turnHost(): TurnHost {
    const host = this.#host;
    const own: Pick<TurnHost, 'compilerFor' | 'ended'> = {
      compilerFor: (turnId) => {
        const entry = this.#turns.get(turnId);
        if (entry === undefined || !host.hasTurn(this.scope.session, turnId)) return this.#compiler;
        entry.compiler ??= new Compiler(
          makeViewer({ ...this.#viewer, scope: entry.turn.scope }),
          host,
        );
        return entry.compiler;
      },
      ended: async (turn) => {
        if (this.#turns.get(turn.turnId)?.turn === turn) this.#turns.delete(turn.turnId);
        if (host.hasTurn(this.scope.session, turn.turnId)) await host.turnEnded(turn.scope);
      },
    };
    return Object.assign(Object.create(host) as ViewHost, own);
  }
}
