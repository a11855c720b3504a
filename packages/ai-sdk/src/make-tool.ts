import type { PlanOptions, ProblemReport, ToolValidator } from '@patchbay/adapter-kit';
import type { CallOptions, ToolResult, Tool as PatchbayTool } from '@patchbay/protocols';
import type { FlexibleSchema, ModelMessage, Schema, Tool } from 'ai';

import { noticeMajor, type Major } from './major.ts';
import { modelOutput, type ModelOutput } from './model-output.ts';
import { withProgress } from './progress.ts';
import { ToolCallError, toToolCallError } from './tool-call-error.ts';
import { ToolSchema } from './tool-schema.ts';
import { typedOutput } from './typed-output.ts';

/** What the AI SDK hands to `execute`, in both majors. */
interface ExecuteOptions {
  readonly toolCallId: string;
  readonly messages: readonly ModelMessage[];
  readonly abortSignal?: AbortSignal | undefined;
}

/** What the tools of one adapter share. */
export interface ToolHost {
  readonly major: Major;
  readonly plan: PlanOptions;
  readonly strict: boolean;
  readonly progress: boolean;
  readonly validator: ToolValidator;
  /** Answer what servers ask in the middle of calls. */
  readonly handlers?: CallOptions['handlers'];
  /** For tools whose output the program has typed. */
  outputOf(name: string): FlexibleSchema | undefined;
  readonly report: ProblemReport;
  /** Calls through the turn of the run that the messages belong to. */
  call(
    name: string,
    args: unknown,
    messages: readonly ModelMessage[],
    options: CallOptions,
  ): Promise<ToolResult>;
  needsApproval(name: string, args: unknown, options: ExecuteOptions): Promise<boolean>;
}

/** A tool of a view as one of the AI SDK. It is found by its name at each call, so it never holds on to a dead source. */
export function makeTool(tool: PatchbayTool, host: ToolHost): Tool {
  const { id, definition } = tool;
  const { name, description, annotations } = definition;
  const title = annotations?.title ?? definition.title;
  const caller = { name, source: id.capability, of: tool };
  const schema = new ToolSchema(tool, host);
  const typed = host.outputOf(name);
  // Nothing is spread here: the AI SDK gets a thousand of them at once.
  const made: Record<string, unknown> = {
    needsApproval: needsApprovalOf(caller, host),
    execute: executeOf(caller, host, typed),
    toModelOutput: toModelOutputOf(caller, host),
    strict: schema.strict,
    // Not sent to the model; on every tool call as `toolMetadata`.
    metadata: { capability: id.capability, tool: id.name, annotations: annotations ?? {} },
    inputSchema: schema,
  };
  // A static one has a type that the program knows.
  if (typed === undefined) made['type'] = 'dynamic';
  if (description !== undefined) made['description'] = description;
  if (title !== undefined) made['title'] = title;
  return made as Tool;
}

/** Stands for a tool that is gone: calls that are still open get an answer. */
export function makeTombstone(name: string, host: ToolHost): Tool {
  const caller = { name, source: undefined };
  return {
    execute: executeOf(caller, host, host.outputOf(name)),
    toModelOutput: toModelOutputOf(caller, host),
    type: 'dynamic',
    needsApproval: true,
    inputSchema: openSchema() as Schema,
  };
}

interface Caller {
  readonly name: string;
  readonly source: string | undefined;
  /** Absent where it is gone. */
  readonly of?: PatchbayTool;
}

type Execute = (args: unknown, options: ExecuteOptions) => unknown;

function needsApprovalOf({ name }: Caller, host: ToolHost) {
  return (args: unknown, options: ExecuteOptions): Promise<boolean> =>
    host.needsApproval(name, args, options);
}

function executeOf(caller: Caller, host: ToolHost, typed: FlexibleSchema | undefined): Execute {
  // A sign of life has no place in what the program has typed.
  if (typed !== undefined)
    return async (args, options) =>
      typedOutput(typed, await run(caller, host, args, options), caller);
  if (host.progress)
    return (args, options) =>
      withProgress((onProgress) => run(caller, host, args, options, { onProgress }));
  return (args, options) => run(caller, host, args, options);
}

async function run(
  caller: Caller,
  host: ToolHost,
  args: unknown,
  options: ExecuteOptions,
  more: CallOptions = {},
): Promise<ToolResult> {
  noticeMajor(host.major, options);
  const { toolCallId, messages, abortSignal } = options;
  const { name, source, of: tool } = caller;
  if (tool !== undefined) host.validator.learn(tool);
  try {
    const result = await host.call(name, args, messages, {
      callId: toolCallId,
      validator: host.validator,
      ...(abortSignal === undefined ? {} : { signal: abortSignal }),
      ...(host.handlers === undefined ? {} : { handlers: host.handlers }),
      ...more,
    });
    if (result.isError !== true) return result;
    const { value } = modelOutput(result, host.plan, host.major) as { readonly value: string };
    throw new ToolCallError(value, { result, source });
  } catch (error) {
    throw error instanceof ToolCallError ? error : toToolCallError(error, caller, abortSignal);
  }
}

function toModelOutputOf({ name, source }: Caller, host: ToolHost) {
  return ({ output }: { readonly output: unknown }): ModelOutput =>
    modelOutput(output, host.plan, host.major, (why) => {
      const message = `A part of a result of ${name} is not shown: ${why}.`;
      host.report({
        source: source ?? name,
        code: 'protocol-error',
        message,
        severity: 'warning',
      });
    });
}

/** Takes any arguments. What `jsonSchema()` of the AI SDK makes; by hand, because only types are taken from a peer. */
function openSchema(): object {
  return {
    [Symbol.for('vercel.ai.schema')]: true,
    [Symbol.for('vercel.ai.validator')]: true,
    _type: undefined,
    jsonSchema: { type: 'object' },
    validate: (value: unknown) => ({ success: true, value }),
  };
}
