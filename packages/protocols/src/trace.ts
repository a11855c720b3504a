import type { ChangeEvent } from './change-observable.ts';
import { toPatchbayError, type PatchbayCode } from './errors.ts';
import type { Scope } from './scope.ts';
import type { ToolId } from './tool-name.ts';

/** How something went. */
export interface Outcome {
  /** In milliseconds. */
  readonly durationMs: number;
  /** `ok`, `tool-error` (a result with `isError`), or the code of the error. */
  readonly outcome: 'ok' | 'tool-error' | PatchbayCode | (string & {});
}

/** An attempt to connect to a server. */
export interface ConnectTrace extends Outcome {
  readonly type: 'connect';
  /** Its label, the program, or the origin of the URL. */
  readonly server: string;
  /** Of a child process. */
  readonly pid?: number;
}

/** A tool call, from the view's point of view: with validation and approval. */
export interface CallTrace extends Outcome {
  readonly type: 'call';
  readonly tool: ToolId;
  /** As the model sees it. */
  readonly name: string;
  readonly scope: Scope;
}

/** A compile for which something had to be asked. */
export interface CompileTrace extends Outcome {
  readonly type: 'compile';
  readonly scope: Scope;
  /** How many sources were visible. */
  readonly sources: number;
}

/** A change that somebody listened to, or a registration. */
export interface ChangeTrace extends ChangeEvent {
  readonly type: 'change';
}

/** Something that happened, for logs, metrics and traces: names and times, never arguments, results or secrets. */
export type TraceEvent = ConnectTrace | CallTrace | CompileTrace | ChangeTrace;

/** Told of what happens, in the same moment. Must not throw. */
export type TraceListener = (event: TraceEvent) => void;

/** Does something, and tells how it went. Without a listener it is just done. */
export async function traced<T>(
  listener: TraceListener | undefined,
  work: () => Promise<T>,
  event: (outcome: Outcome, result: T | undefined) => TraceEvent,
): Promise<T> {
  if (listener === undefined) return work();
  const start = performance.now();
  const tell = (outcome: Outcome['outcome'], result?: T) =>
    listener(event({ durationMs: performance.now() - start, outcome }, result));
  let result: T;
  try {
    result = await work();
  } catch (error) {
    tell(toPatchbayError(error).code);
    throw error;
  }
  const failed = (result as { readonly isError?: unknown } | null | undefined)?.isError === true;
  tell(failed ? 'tool-error' : 'ok', result);
  return result;
}
