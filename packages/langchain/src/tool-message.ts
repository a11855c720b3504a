import { ToolMessage } from '@langchain/core/messages';
import { errorText, planResult } from '@patchbay/adapter-kit';
import { toPatchbayError, type ToolResult } from '@patchbay/protocols';

/** What a call gave, whole, as it lies in `artifact.patchbay` of its ToolMessage. Programs read it; no model sees it. */
export interface ToolArtifact extends ToolResult {
  /** Set where patchbay or a connection failed, absent where the tool itself reports a failure. */
  readonly error?: {
    /** See `PatchbayCode`. */
    readonly code: string;
    /** The capability. */
    readonly source?: string;
    readonly details?: Readonly<Record<string, unknown>>;
  };
}

/** What a ToolMessage needs to know of its call. */
export interface CallOfMessage {
  readonly id?: string | undefined;
  readonly name: string;
  /** The capability, where it is known. */
  readonly source?: string | undefined;
}

/** The artifact that this package put into a message. */
export function artifactOf(message: ToolMessage): ToolArtifact | undefined {
  const artifact: unknown = message.artifact;
  if (typeof artifact !== 'object' || artifact === null || !('patchbay' in artifact)) {
    return undefined;
  }
  const { patchbay } = artifact;
  const usable =
    typeof patchbay === 'object' &&
    patchbay !== null &&
    'content' in patchbay &&
    Array.isArray(patchbay.content);
  return usable ? (patchbay as ToolArtifact) : undefined;
}

/** How results are shown. */
export interface ResultSettings {
  /** Default: the kit's. */
  readonly maxResultChars: number | undefined;
  /** Told of a part that could not be used: what it is and why. */
  readonly onUnusablePart: (call: CallOfMessage, what: string) => void;
}

/**
 * A result as one plain string with the whole of it beside. A string, because lists of blocks are dropped, refused or
 * written out as JSON by one provider package or the other; the text says that it is an error, because `status` is not
 * sent by most.
 */
export function resultMessage(
  call: CallOfMessage,
  result: ToolResult,
  { maxResultChars, onUnusablePart }: ResultSettings,
): ToolMessage {
  const { text, isError, problems } = planResult(
    result,
    maxResultChars === undefined ? {} : { maxResultChars },
  );
  for (const problem of problems) onUnusablePart(call, problem);
  return toolMessage(call, text, result, isError);
}

/** A call that patchbay or a connection failed at, as an answer: a throw would end the run and abort its siblings. */
export function errorMessage(call: CallOfMessage, thrown: unknown): ToolMessage {
  const error = toPatchbayError(thrown);
  const source = error.source ?? call.source;
  const text = errorText(thrown);
  return toolMessage(
    call,
    text,
    {
      content: [{ type: 'text', text }],
      isError: true,
      error: {
        code: error.code,
        ...(source === undefined ? {} : { source }),
        ...(error.details === undefined ? {} : { details: error.details }),
      },
    },
    true,
  );
}

function toolMessage(
  call: CallOfMessage,
  content: string,
  patchbay: ToolArtifact,
  isError: boolean,
): ToolMessage {
  return new ToolMessage({
    content,
    status: isError ? 'error' : 'success',
    artifact: { patchbay },
    name: call.name,
    tool_call_id: call.id ?? '',
  });
}
