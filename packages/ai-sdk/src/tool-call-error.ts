import { errorText } from '@patchbay/adapter-kit';
import { PatchbayError, type ToolResult } from '@patchbay/protocols';

interface ToolCallErrorOptions {
  readonly cause?: unknown;
  readonly result?: ToolResult;
  readonly source?: string | undefined;
}

/**
 * What the AI SDK gets where a tool failed: it makes a `tool-error` part of it, the model reads the message, the run
 * goes on. `cause` is the error behind it; `result` the whole result, where the tool itself says that it failed.
 */
export class ToolCallError extends Error {
  override readonly name: string = 'ToolCallError';
  readonly result: ToolResult | undefined;
  /** The capability that the tool belongs to, where it is known. */
  readonly source: string | undefined;

  constructor(text: string, options: ToolCallErrorOptions) {
    super(text, 'cause' in options ? { cause: options.cause } : undefined);
    this.result = options.result;
    this.source = options.source;
  }

  /** AI SDK 7 shows `toString()` to the model, 6 the message: the same text in both. */
  override toString(): string {
    return this.message;
  }
}

/** An error of a call, in the words that a model reads. A time limit of the AI SDK is told apart from an abort. */
export function toToolCallError(
  thrown: unknown,
  tool: { readonly name: string; readonly source: string | undefined },
  signal?: AbortSignal,
): ToolCallError {
  const limit = signal?.aborted === true && isTimeout(signal.reason);
  const aborted = PatchbayError.isInstance(thrown) && thrown.code === 'aborted';
  const cause =
    limit && aborted
      ? new PatchbayError(
          'timeout',
          `${tool.name} did not end within the time limit of this step.`,
          {
            cause: thrown,
            details: { tool: tool.name },
          },
        )
      : thrown;
  return new ToolCallError(errorText(cause), { cause, source: tool.source });
}

function isTimeout(reason: unknown): boolean {
  return (
    typeof reason === 'object' &&
    reason !== null &&
    'name' in reason &&
    reason.name === 'TimeoutError'
  );
}
