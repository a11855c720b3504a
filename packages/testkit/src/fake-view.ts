import {
  changeSource,
  PatchbayError,
  type CallOptions,
  type CompiledView,
  type ExtensionView,
  type Identity,
  type InstructionBlock,
  type Scope,
  type SkillEntry,
  type Tool,
  type ToolResult,
  type TurnContribution,
  type TurnStep,
  type TurnView,
} from '@patchbay/protocols';

import { emptyCommands, emptyResources } from './empty-routers.ts';
import { callTool } from './fake-call.ts';

/** What a fake view shows. */
export interface FakeViewContents {
  /** See `defineTool` of `@patchbay/protocols`. */
  readonly tools?: readonly Tool[];
  readonly skills?: readonly SkillEntry[];
  readonly instructions?: readonly InstructionBlock[];
  /** What is added to, or hidden in, a turn in which the user said this. */
  readonly turn?: (userText: string | undefined) => TurnContribution;
}

export interface FakeViewOptions extends FakeViewContents {
  readonly scope?: Scope;
  readonly identity?: Identity;
}

/** A call that was made through a fake view. */
export interface FakeCall {
  readonly name: string;
  readonly args: unknown;
  /** `rejected`: it did not run, or its function threw. */
  readonly outcome: 'answered' | 'rejected';
}

/** A view without a registry, for tests of whoever takes a view: an agent, an adapter. */
export interface FakeView extends ExtensionView {
  /** Every call that ended, in that order. */
  readonly calls: readonly FakeCall[];
  /** Shows something else from now on, and says so; what is not named stays. */
  update(contents: FakeViewContents): void;
  /** Ends every open turn, as a registry does with those that rest longer than they may. */
  endTurns(): Promise<void>;
}

/**
 * A view of exactly this. It refuses what a registry's view refuses: unknown and hidden tools, arguments that the
 * adapter's validator does not accept, calls that are aborted. There is no approval policy: everything is allowed.
 */
export function fakeView(options: FakeViewOptions = {}): FakeView {
  const { scope = {}, identity } = options;
  let contents: FakeViewContents = options;
  const calls: FakeCall[] = [];
  const changes = changeSource('fake-view');
  const closed = new AbortController();
  const turns = new Map<string, TurnView>();

  const call = async (
    hidden: (name: string) => boolean,
    name: string,
    args: unknown,
    given: CallOptions = {},
  ): Promise<ToolResult> => {
    try {
      const result = await callTool(
        { tools: contents.tools ?? [], hidden, scope, identity },
        name,
        args,
        given,
      );
      calls.push({ name, args, outcome: 'answered' });
      return result;
    } catch (error) {
      calls.push({ name, args, outcome: 'rejected' });
      throw error;
    }
  };

  const compiler = (): (() => CompiledView) => {
    let seen: FakeViewContents | undefined;
    let made: CompiledView | undefined;
    return () => {
      if (made === undefined || seen !== contents) {
        seen = contents;
        made = {
          revision: (made?.revision ?? 0) + 1,
          tools: sorted(contents.tools),
          instructions: ordered(contents.instructions),
          skills: (contents.skills ?? []).map((entry) => ({ ...entry, source: entry.origin })),
          problems: [],
          callTool: (name, args, given) => call(() => false, name, args, given),
          approval: async () => 'allow',
        };
      }
      return made;
    };
  };
  const compile = compiler();
  let compiled: CompiledView | undefined;

  const beginTurn: ExtensionView['beginTurn'] = (input = {}) => {
    const turnId = input.turnId ?? globalThis.crypto.randomUUID();
    const open = turns.get(turnId);
    if (open !== undefined) return open;
    let { userText } = input;
    let step: TurnStep | undefined;
    let hide: readonly string[] = [];
    let ended = false;
    const close = async () => {
      ended = true;
      if (turns.get(turnId) === turn) turns.delete(turnId);
    };
    const assertOpen = () => {
      if (ended) throw new PatchbayError('closed', `The turn "${turnId}" has ended.`);
    };
    const turn: TurnView = {
      turnId,
      scope,
      prepare: async (next = {}) => {
        assertOpen();
        userText = next.userText ?? userText;
        const added = contents.turn?.(userText) ?? {};
        hide = added.hide ?? [];
        const view = compile();
        step = {
          revision: (step?.revision ?? 0) + 1,
          tools: view.tools.filter(({ definition }) => !hide.includes(definition.name)),
          instructions: ordered([...view.instructions, ...(added.instructions ?? [])]),
          active: added.active ?? [],
          problems: [],
        };
        return step;
      },
      current: () => step,
      callTool: async (name, args, given) => {
        assertOpen();
        return call((asked) => hide.includes(asked), name, args, given);
      },
      approval: async () => 'allow',
      close,
      [Symbol.asyncDispose]: close,
    };
    turns.set(turnId, turn);
    input.signal?.addEventListener('abort', () => void close(), { once: true });
    return turn;
  };

  const listen: ExtensionView['changes'] = ({ signal } = {}) =>
    changes.subscribe(
      signal === undefined ? closed.signal : AbortSignal.any([signal, closed.signal]),
    );
  const endTurns = async () => {
    await Promise.all([...turns.values()].map((turn) => turn.close()));
  };
  const close = async () => {
    await endTurns();
    closed.abort();
  };

  return {
    scope,
    identity,
    calls,
    update: (next) => {
      contents = { ...contents, ...next };
      changes.emit('tools_changed');
    },
    endTurns,
    compile: async () => (compiled = compile()),
    current: () => compiled,
    beginTurn,
    changes: listen,
    commands: emptyCommands,
    resources: emptyResources(listen),
    close,
    [Symbol.asyncDispose]: close,
  };
}

const sorted = (tools: readonly Tool[] = []): readonly Tool[] =>
  tools.toSorted((a, b) => (a.definition.name < b.definition.name ? -1 : 1));

const ordered = (blocks: readonly InstructionBlock[] = []): readonly InstructionBlock[] => [
  ...blocks.filter(({ kind }) => kind === 'static'),
  ...blocks.filter(({ kind }) => kind === 'dynamic'),
];
