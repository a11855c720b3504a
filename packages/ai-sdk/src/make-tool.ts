import {
  withoutStrictNulls,
  type PlanOptions,
  type ProblemReport,
  type ProviderSchemas,
  type ToolValidator,
} from '@patchbay/adapter-kit';
import type { CallOptions, ToolResult, Tool as PatchbayTool } from '@patchbay/protocols';
import type { FlexibleSchema, JSONValue, ModelMessage, Schema, Tool } from 'ai';

import { noticeMajor, type Major } from './major.ts';
import { modelOutput } from './model-output.ts';
import { withProgress } from './progress.ts';
import { ToolCallError, toToolCallError } from './tool-call-error.ts';
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
  readonly schemas: ProviderSchemas;
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
  const { name, description, title, annotations, inputSchema } = definition;
  const { schema, strict, notes } = host.schemas(inputSchema, { strict: host.strict });
  const source = id.capability;
  host.validator.learn(tool);
  for (const note of notes) {
    const message = `The arguments of ${name} are not shown as written. ${note}`;
    host.report({ source, code: 'schema-unusable', message, severity: 'warning' });
  }
  return {
    ...actions({ name, source }, host),
    // A static one has a type that the program knows.
    ...(host.outputOf(name) === undefined ? { type: 'dynamic' as const } : {}),
    ...(description === undefined ? {} : { description }),
    ...(annotations?.title === undefined && title === undefined
      ? {}
      : { title: annotations?.title ?? title }),
    strict,
    // Not sent to the model; on every tool call as `toolMetadata`.
    metadata: {
      capability: id.capability,
      tool: id.name,
      annotations: (annotations ?? {}) as JSONValue,
    },
    inputSchema: asSchema(schema, (value) => {
      const args = strict ? withoutStrictNulls(inputSchema, value) : value;
      const check = host.validator.validate(inputSchema, args ?? {});
      return check.ok
        ? { success: true, value: args }
        : { success: false, error: new Error(check.violations.join('\n')) };
    }),
  };
}

/** Stands for a tool that is gone: calls that are still open get an answer. */
export function makeTombstone(name: string, host: ToolHost): Tool {
  return {
    ...actions({ name, source: undefined }, host),
    type: 'dynamic',
    needsApproval: true,
    inputSchema: asSchema({ type: 'object' }, (value) => ({ success: true, value })),
  };
}

interface Named {
  readonly name: string;
  readonly source: string | undefined;
}

function actions(tool: Named, host: ToolHost): object {
  const { name, source } = tool;
  const run = async (args: unknown, options: ExecuteOptions, more: CallOptions = {}) => {
    noticeMajor(host.major, options);
    const { toolCallId, messages, abortSignal } = options;
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
      throw error instanceof ToolCallError ? error : toToolCallError(error, tool, abortSignal);
    }
  };
  const typed = host.outputOf(name);
  const execute = (args: unknown, options: ExecuteOptions) => run(args, options);
  const executeTyped = async (args: unknown, options: ExecuteOptions) =>
    typedOutput(typed!, await run(args, options), tool);
  const executeWithProgress = (args: unknown, options: ExecuteOptions) =>
    withProgress((onProgress) => run(args, options, { onProgress }));
  return {
    needsApproval: (args: unknown, options: ExecuteOptions) =>
      host.needsApproval(name, args, options),
    // A sign of life has no place in what the program has typed.
    execute: typed !== undefined ? executeTyped : host.progress ? executeWithProgress : execute,
    toModelOutput: ({ output }: { readonly output: unknown }) =>
      modelOutput(output, host.plan, host.major, (why) => {
        const message = `A part of a result of ${name} is not shown: ${why}.`;
        host.report({
          source: source ?? name,
          code: 'protocol-error',
          message,
          severity: 'warning',
        });
      }),
  };
}

type Validation = { success: true; value: unknown } | { success: false; error: Error };

/** What `jsonSchema()` of the AI SDK makes; by hand, because only types are taken from a peer. */
function asSchema(schema: object, validate: (value: unknown) => Validation): Schema {
  return {
    [Symbol.for('vercel.ai.schema')]: true,
    [Symbol.for('vercel.ai.validator')]: true,
    _type: undefined,
    jsonSchema: schema,
    validate,
  } as unknown as Schema;
}
