import { DynamicStructuredTool } from '@langchain/core/tools';
import type { ToolMessage } from '@langchain/core/messages';
import type { ToolValidator } from '@patchbay/adapter-kit';
import type { Progress, ServerRequestHandlers, TurnView } from '@patchbay/protocols';

import { callAsking, type Interrupt } from './approval.ts';
import { bubbleUp } from './control-flow.ts';
import type { Said } from './run-turn.ts';
import {
  errorMessage,
  resultMessage,
  type CallOfMessage,
  type ResultSettings,
} from './tool-message.ts';

/** How the calls of one adapter are made. */
export interface ExecSettings extends ResultSettings {
  readonly validator: ToolValidator;
  /** See `LangchainOptions.handlers`. */
  readonly handlers?: ServerRequestHandlers | undefined;
}

/** Where a call comes from. */
export interface ExecOrigin {
  readonly turn: Pick<TurnView, 'callTool'>;
  readonly interrupt?: Interrupt | undefined;
  /** What a person said when they were asked about the step. */
  readonly said?: Said | undefined;
  /** The custom stream of the run. */
  readonly writer?: ((chunk: unknown) => void) | undefined;
}

/** A piece of `streamMode: 'custom'`: a sign of life of a running call. */
export interface ProgressChunk extends Progress {
  readonly type: 'patchbay.progress';
  readonly tool: string;
  readonly callId?: string;
}

/**
 * The schema that takes anything, which its type leaves out. Of an object LangChain would look for references, and write into
 * it, at each call.
 */
const ANYTHING = true as unknown as DynamicStructuredTool['schema'];

/**
 * One call as a LangChain tool: only inside one are there callbacks, traces, stream events and the signal of the agent.
 * Its schema is open, for the view checks the arguments once, against what the tool's author wrote; LangChain would
 * compile that schema anew for each call. It answers with a finished message and throws only what is no answer: an abort
 * and the graph's own control flow.
 */
export function execTool(
  call: CallOfMessage,
  description: string,
  origin: ExecOrigin,
  settings: ExecSettings,
): DynamicStructuredTool {
  const { name, id } = call;
  const { turn, interrupt, said, writer } = origin;
  const { validator, handlers } = settings;
  const ids = id === undefined ? {} : { callId: id };
  const onProgress = (progress: Progress) =>
    writer?.({
      type: 'patchbay.progress',
      tool: name,
      ...ids,
      ...progress,
    } satisfies ProgressChunk);
  return new DynamicStructuredTool({
    name,
    description,
    schema: ANYTHING,
    metadata: { patchbay: true },
    func: async (args: unknown, _manager, config): Promise<ToolMessage> => {
      const signal = config?.signal;
      const options = {
        ...ids,
        ...(signal === undefined ? {} : { signal }),
        onProgress,
        validator,
        ...(handlers === undefined ? {} : { handlers }),
      };
      try {
        const result = await callAsking(turn, { name, args }, options, { said, interrupt });
        return resultMessage(call, result, settings);
      } catch (error) {
        const control = bubbleUp(error);
        if (control !== undefined) throw control;
        if (signal?.aborted === true) throw signal.reason ?? error;
        return errorMessage(call, error);
      }
    },
  });
}

/** Whether a tool is one of {@link execTool}, of this or another view: it keeps the rules by itself. */
export function isExecTool(tool: object): boolean {
  const { metadata } = tool as { readonly metadata?: Readonly<Record<string, unknown>> };
  return metadata?.['patchbay'] === true;
}
