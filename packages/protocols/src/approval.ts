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
