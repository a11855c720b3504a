import type { Identity, Scope } from './scope.ts';
import type { ToolAnnotations } from './tool.ts';
import type { ToolId } from './tool-name.ts';

/** What an approval is asked for. */
export interface ApprovalRequest {
  readonly tool: {
    readonly id: ToolId;
    readonly name: string;
    readonly annotations?: ToolAnnotations;
  };
  readonly args: Readonly<Record<string, unknown>>;
  readonly scope: Scope;
  readonly identity?: Identity;
  /** Skills of servers whose text is before the model: what it does may be what one of them wants. Absent without any. */
  readonly acting?: readonly ActingSkill[];
}

/** A skill that a server serves, and whose text is before the model: a server may have made it up. (Skills over MCP) */
export interface ActingSkill {
  /** The label of the server: the id of the capability. */
  readonly server: string;
  /** The name by which the model knows it. Data of the server: escape it where it is shown. */
  readonly name: string;
  /** Tools that the user approved for it, as the model sees them; `*` matches any run of characters. */
  readonly approvedTools?: readonly string[];
}

/** `ask` needs a person: the framework's own way of asking is used; where nobody can be asked it is a refusal. */
export type ApprovalDecision =
  | 'allow'
  | 'deny'
  | 'ask'
  | { readonly ask: string }
  | { readonly deny: string };

/** Decides whether a call may run. Asked inside `callTool`, so that no adapter can pass it by. A throw is a refusal. */
export type ApprovalPolicy = (
  request: ApprovalRequest,
) => ApprovalDecision | Promise<ApprovalDecision>;
