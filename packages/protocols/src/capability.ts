import type { ActingSkill } from './approval.ts';
import type { PeerCommand } from './command-resource.ts';
import type { Json } from './json.ts';
import type { Problem } from './problem.ts';
import type { Identity, RegistrationScope, Scope } from './scope.ts';
import type { ActiveSkill, PeerSkill } from './skill-resource.ts';
import type { Tool } from './tool.ts';

/**
 * Something an agent can be extended with. Every part but the id is optional; which resource protocols it implements
 * is recognised by its methods (`isSkillResource` and the like), never by its class.
 *
 * Creating and registering one does no I/O. (RFC-0051 "AbstractCapability")
 */
export interface Capability {
  /** Unique within a scope; part of the tool names a model sees. Short and stable: `github`, `my-skills`. */
  readonly id: string;
  /** Its tools. Connections happen here. What of `context` was read decides for whom the answer may be kept. */
  tools?(context: CompileContext): Promise<readonly Tool[]>;
  /** Text for the system prompt: metadata, not bodies. */
  instructions?(context: CompileContext): Promise<readonly InstructionBlock[]>;
  /** Asked before each model request of a turn, with what the user said. Must be quick. (RFC: before_model_request) */
  prepareTurn?(turn: TurnContext): Promise<TurnContribution | undefined>;
  /**
   * Skills of servers whose text an agent has before it, as far as the session remembers: those of a turn are in what
   * `prepareTurn` contributes. Asked before each call, by turns and without one; a throw refuses the call.
   */
  acting?(context: Pick<CompileContext, 'scope' | 'state'>): readonly ActingSkill[];
  /** May hide itself from a scope that would see it; can never show itself to one that would not. */
  visible?(scope: Scope): boolean;
  /**
   * A scope is over, and everything below it: what was kept for it alone can go. Told after what was registered there is
   * closed. Must be quick; a throw is a problem.
   */
  scopeEnded?(scope: RegistrationScope): void;
  /** How it stands, for `inspect()` and for the model when it is not available. */
  status?(): CapabilityStatus;
  /**
   * What it is composed of. They are registered and closed with it, at its scope, and seen where it is seen, each under
   * its own id: one that fails or hangs costs nobody but itself. Fixed once it is registered.
   * (RFC-0051 "Composition via Client Sharing")
   */
  readonly children?: readonly Capability[];
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** How a capability stands. */
export interface CapabilityStatus {
  readonly state: 'idle' | 'connecting' | 'ready' | 'lost' | 'degraded' | 'closed' | (string & {});
  /** Since when, ISO 8601. */
  readonly since?: string;
  /** When the next attempt is made, ISO 8601. */
  readonly retryAt?: string;
  /** Plain facts for a table: pid, server version, calls. No secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/**
 * For whom something is compiled. Reading `scope`, `identity`, `peers` or `state` is remembered: an answer that was made
 * without the scope is shared by every scope, one that read the peers is made again when they change. So take from it
 * only what the answer depends on, and do not spread it.
 */
export interface CompileContext {
  readonly scope: Scope;
  readonly identity?: Identity | undefined;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly peers: PeerQuery;
  readonly state: SessionState;
  /** Something to tell the program that is no failure of the whole; shown in `problems` as long as this answer holds. */
  report(problem: Problem): void;
}

/** What else is visible here. */
export interface PeerQuery {
  /** Skills of every other visible capability, sorted by name, then by source. */
  skills(): Promise<readonly PeerSkill[]>;
  /** Slash commands of every other visible capability. */
  commands(): Promise<readonly PeerCommand[]>;
  /**
   * Skills at an address, also those that their source lists nowhere: one of each source that has it. An address is no name:
   * several may have the same. Absent where nobody can look.
   */
  skillsAt?(uri: string): Promise<readonly PeerSkill[]>;
  /** Ids of every other visible capability, sorted. Absent where nobody knows them. */
  ids?(): readonly string[];
}

/**
 * What a session remembers: activations, approvals. It lives here and never in a capability, because a capability may be
 * shared by many sessions. Values are plain JSON, so that a session survives a restart. What belongs to one agent has a key
 * that ends in a colon and the agent's path (`skills.active:coder/researcher`): it goes when that agent ends.
 */
export interface SessionState {
  get(key: string): Json | undefined;
  /** `undefined` removes the key. Whoever compiled with the old value is asked again. */
  set(key: string, value: Json | undefined): void;
  snapshot(): { readonly [key: string]: Json };
  /** Replaces everything. */
  restore(snapshot: { readonly [key: string]: Json }): void;
}

/** A piece of the system prompt. */
export interface InstructionBlock {
  /** The capability it comes from. */
  readonly source: string;
  /** `static` is the same for as long as its source does not change, and goes first; `dynamic` may differ each time. */
  readonly kind: 'static' | 'dynamic';
  readonly text: string;
}

/** A turn, as `prepareTurn` sees it. */
export interface TurnContext extends CompileContext {
  readonly turnId: string;
  /** The newest text of the user; absent where the adapter knows none. */
  readonly userText?: string | undefined;
  /**
   * Whether the conversation that the model is given has this text: after a compaction it may be gone. Absent where the
   * adapter cannot tell: then what was said once counts as said.
   */
  readonly isSaid?: ((text: string) => boolean) | undefined;
}

/** What a capability adds to the next model request. */
export interface TurnContribution {
  readonly instructions?: readonly InstructionBlock[];
  /** Names (as the model sees them; `*` matches any run of characters) of tools to hide and refuse in this turn. */
  readonly hide?: readonly string[];
  /** Skills whose bodies are in force, so that an adapter can attach them again after a compaction. */
  readonly active?: readonly ActiveSkill[];
}
