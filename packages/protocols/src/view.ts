import type { ApprovalDecision } from './approval.ts';
import type { InstructionBlock } from './capability.ts';
import type { ChangeEvent } from './change-observable.ts';
import type { CommandRouter } from './command-resource.ts';
import type { ServerRequestHandlers } from './connection.ts';
import type { ContentPart } from './content.ts';
import type { JsonSchema } from './json.ts';
import type { ResourceEntry } from './mcp-resource.ts';
import type { Problem } from './problem.ts';
import type { Identity, Scope } from './scope.ts';
import type { ActiveSkill, SkillEntry } from './skill-resource.ts';
import type { Progress, Tool, ToolResult } from './tool.ts';

/** Checks arguments against a schema. A port: the registry brings no validator of its own, adapters do. */
export interface ArgumentValidator {
  /** One line per violation, written for a model: where, what was expected, what came. */
  validate(schema: JsonSchema, args: unknown): ArgumentCheck;
}

export type ArgumentCheck =
  | { readonly ok: true }
  | { readonly ok: false; readonly violations: readonly string[] };

/** How a call is made through a view. */
export interface CallOptions {
  readonly callId?: string;
  readonly signal?: AbortSignal;
  /** Milliseconds without a sign of life. Default: the source's own. */
  readonly timeoutMs?: number;
  readonly onProgress?: (progress: Progress) => void;
  readonly handlers?: ServerRequestHandlers;
  /** Used when the registry has none. Without any, the source's own check is the only one. */
  readonly validator?: ArgumentValidator;
  /** A person has said yes to this very call: an `ask` of the policy is answered. A `deny` stays one. */
  readonly approved?: boolean;
  /**
   * Which answer of a person that was, where answers can come again (a conversation that is sent twice): it counts for one
   * call in its session that succeeded, or may have.
   */
  readonly approvalId?: string;
}

/**
 * Calls a tool by the name that the model sees: binds scope and identity, checks the arguments, asks the approval policy.
 * @throws PatchbayError `tool-unavailable`, `tool-hidden`, `invalid-arguments` (with `details.violations`),
 * `approval-required`, `approval-denied`, `aborted`, `timeout`, `outcome-unknown`, and what the source failed with.
 */
export type CallTool = (name: string, args: unknown, options?: CallOptions) => Promise<ToolResult>;

/** What one scope sees at one moment. Immutable. */
export interface CompiledView {
  /** Grows with every difference; the same number means the same object. */
  readonly revision: number;
  /** Sorted by name. */
  readonly tools: readonly Tool[];
  /** Static ones first, each group sorted by source: byte-stable as long as their sources do not change. */
  readonly instructions: readonly InstructionBlock[];
  /** Sorted by name, then by source. */
  readonly skills: readonly (SkillEntry & { readonly source: string })[];
  readonly problems: readonly Problem[];
  /** Needs no `this`. */
  readonly callTool: CallTool;
  /** What the approval policy says to a call, without making it. `allow` where there is no policy. */
  readonly approval: (name: string, args: unknown) => Promise<ApprovalDecision>;
}

/** How a compile waits. */
export interface CompileOptions {
  /** Milliseconds to wait for a source that has not answered yet. Default: the registry's `sourceTimeoutMs`. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** Everything one scope sees, live. What adapters get, and all that they get. */
export interface ExtensionView {
  readonly scope: Scope;
  readonly identity: Identity | undefined;
  /**
   * An immutable snapshot. Unchanged sources are not asked again; a failing source becomes a problem.
   * @throws PatchbayError `closed` if the view is, or while it waits; the reason of its signal
   */
  compile(options?: CompileOptions): Promise<CompiledView>;
  /** The newest snapshot, without looking whether it is still right. */
  current(): CompiledView | undefined;
  /** A turn with this id: the same one if it is open, else a new one. Parallel turns do not mix. */
  beginTurn(input?: TurnInput): TurnView;
  /** Merged over everything that is or becomes visible here. */
  changes(options?: { readonly signal?: AbortSignal }): AsyncIterable<ChangeEvent>;
  readonly commands: CommandRouter;
  readonly resources: ResourceView;
  /**
   * Ends its turns, compiles, calls and change streams: who waits for one is told `closed`. Capabilities and connections
   * are not its own: they stay.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TurnInput {
  /** What the user said. */
  readonly userText?: string;
  /** Default: a new one. */
  readonly turnId?: string;
  /** Ends the turn. */
  readonly signal?: AbortSignal;
}

/** What the next model request gets. */
export interface TurnStep {
  readonly revision: number;
  /** Without hidden ones. Sorted by name. */
  readonly tools: readonly Tool[];
  /** With what capabilities added for this turn. */
  readonly instructions: readonly InstructionBlock[];
  /** Skills in force. */
  readonly active: readonly ActiveSkill[];
  readonly problems: readonly Problem[];
}

/** One turn: what `prepareTurn` contributed, and calls that respect it. */
export interface TurnView {
  readonly turnId: string;
  readonly scope: Scope;
  /** Before each model request. Waits at most the registry's `compileDeadlineMs` for sources that are new. */
  prepare(input?: PrepareInput): Promise<TurnStep>;
  /** What the last `prepare` gave. */
  current(): TurnStep | undefined;
  /** Against the newest state: a tool that is gone, or hidden in this turn, is refused. Needs no `this`. */
  readonly callTool: CallTool;
  /** See {@link CompiledView.approval}. */
  readonly approval: (name: string, args: unknown) => Promise<ApprovalDecision>;
  /**
   * Ends the turn and closes what was registered for it. Also done by its signal, or after the idle limit. Calls that are
   * running go on: they have signals of their own, and end with the view.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What is known about the model request that a turn prepares. */
export interface PrepareInput {
  readonly userText?: string;
  readonly signal?: AbortSignal;
  /** See {@link TurnContext.isSaid}. */
  readonly isSaid?: (text: string) => boolean;
}

/** Everything readable at one scope: skills and resources, by URI. (RFC-0051 "ResourceSourceAdapter") */
export interface ResourceView {
  list(options?: {
    readonly signal?: AbortSignal;
  }): Promise<readonly (ResourceEntry & { readonly source: string })[]>;
  /** @throws PatchbayError `invalid-uri`, `unknown-scheme`, `not-found` */
  read(uri: string, options?: { readonly signal?: AbortSignal }): Promise<readonly ContentPart[]>;
  /** @throws PatchbayError `invalid-uri`, `unknown-scheme` */
  exists(uri: string, options?: { readonly signal?: AbortSignal }): Promise<boolean>;
  /**
   * Asks the resource's source to tell when it is updated, until `signal` aborts: as `resource_updated` in {@link changes}.
   * @throws PatchbayError `invalid-uri`, `unknown-scheme`, `not-found`, `not-supported`
   */
  watch(uri: string, options: { readonly signal: AbortSignal }): Promise<void>;
  changes(options?: { readonly signal?: AbortSignal }): AsyncIterable<ChangeEvent>;
}
