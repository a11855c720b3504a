import type { CompileContext } from './capability.ts';
import type { ServerRequestHandlers } from './connection.ts';
import type { ContentPart } from './content.ts';
import { PatchbayError } from './errors.ts';
import type { JsonSchema } from './json.ts';
import type { Identity, Scope } from './scope.ts';
import type { Stop } from './stop.ts';
import { exposedToolName, type ToolId } from './tool-name.ts';

/** Claims of a tool's author. Hints for people and policies, never a security boundary. (MCP "ToolAnnotations") */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/**
 * What a tool is. Treated as frozen and compared by identity: an unchanged tool keeps its definition object, so that
 * whatever is derived from it (a validator, a framework's tool) can be kept in a `WeakMap`.
 */
export interface ToolDefinition {
  /** In a {@link ToolSource} the source's own name; in a {@link Tool} the name that a model sees. */
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** Arguments, as their author wrote it. Always an object schema at the top, but see `adapter-kit` for what occurs. */
  readonly inputSchema: JsonSchema;
  /** Of `structuredContent`. A result with `isError` is never measured by it. */
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  /** `_meta` and the like. Never shown to a model. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** What a call gave. Independent of any SDK's shape. */
export interface ToolResult {
  readonly content: readonly ContentPart[];
  /** Any JSON value. */
  readonly structuredContent?: unknown;
  /** The tool ran and says that it failed; `content` says why. Not an exception: a model reads it and goes on. */
  readonly isError?: boolean;
  /**
   * For programs; never shown to a model. A view adds `patchbay/invalid-output` (`{ code, tool, violations }`) where
   * `structuredContent` is not what the tool's `outputSchema` promises.
   */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** A sign of life of a running call. */
export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** With whom, for whom and for how long a call is made. */
export interface CallContext {
  readonly scope: Scope;
  readonly identity?: Identity;
  /** Unique per call; the framework's own call id where there is one. */
  readonly callId: string;
  /** Cancels the call; its source is told. The connection stays. */
  readonly signal?: AbortSignal;
  /** The same, for a source that can do without an AbortSignal: one is only made where `signal` is read. */
  readonly stop?: Stop;
  /** How long to wait without a sign of life, in milliseconds. Default: the source's own. */
  readonly timeoutMs?: number;
  readonly onProgress?: (progress: Progress) => void;
  /** Answers what a server asks in the middle of this call. */
  readonly handlers?: ServerRequestHandlers;
}

/** A tool that a view offers. */
export interface Tool {
  readonly id: ToolId;
  /** Its `name` is {@link exposedToolName} of `id`, or a reserved bare name of patchbay's own tools. */
  readonly definition: ToolDefinition;
  /**
   * Runs the tool. `args` are not validated here: a view does that before it calls.
   * Rejects with a {@link PatchbayError} when patchbay or a connection failed; what the tool itself calls an error is a
   * result with `isError`.
   */
  call(args: unknown, context: CallContext): Promise<ToolResult>;
}

/** Provides tools by name: an MCP server, an API description. A capability that is one needs no `tools()` of its own. */
export interface ToolSource {
  /** With the source's own names. Unchanged tools keep their definition objects from one listing to the next. */
  listTools(context: CompileContext): Promise<readonly ToolDefinition[]>;
  /** `context` may be absent: then the call is made at pool scope, for no identity. */
  callTool(name: string, args: unknown, context?: CallContext): Promise<ToolResult>;
}

/** What {@link defineTool} takes. */
export interface ToolOptions extends Omit<ToolDefinition, 'inputSchema'> {
  /** The id of the capability that provides it. */
  readonly capability: string;
  /** Default: an object without properties. */
  readonly inputSchema?: JsonSchema;
  /** A string becomes a text result; another plain value becomes `structuredContent`, with its JSON as text. */
  readonly call: (
    args: Readonly<Record<string, unknown>>,
    context: CallContext,
  ) => ToolReturn | Promise<ToolReturn>;
}

/** What the function of {@link defineTool} may return. */
export type ToolReturn = ToolResult | string | number | boolean | null | undefined | object;

/** A tool of a program's own, under the name that a model sees. */
export function defineTool(options: ToolOptions): Tool {
  const {
    capability,
    call,
    name,
    inputSchema = { type: 'object', properties: {} },
    ...rest
  } = options;
  if (typeof name !== 'string' || name === '') {
    throw new PatchbayError('tool-name', `A tool of "${capability}" has no name.`, {
      source: capability,
    });
  }
  const id: ToolId = Object.freeze({ capability, name });
  return Object.freeze({
    id,
    definition: Object.freeze({ ...rest, name: exposedToolName(id), inputSchema }),
    call: async (args: unknown, context: CallContext) =>
      toToolResult(await call((args ?? {}) as Record<string, unknown>, context)),
  });
}

/**
 * The tools of a {@link ToolSource} as a view offers them. `known` keeps one {@link Tool} per definition object, so that
 * an unchanged tool stays the same object from one listing to the next; hand in the same map each time.
 */
export function toolsFromSource(
  capability: string,
  source: ToolSource,
  definitions: readonly ToolDefinition[],
  known: WeakMap<ToolDefinition, Tool>,
): readonly Tool[] {
  return definitions.map((definition) => {
    let tool = known.get(definition);
    if (tool === undefined) {
      const id: ToolId = Object.freeze({ capability, name: definition.name });
      tool = Object.freeze({
        id,
        definition: Object.freeze({ ...definition, name: exposedToolName(id) }),
        call: (args: unknown, context: CallContext) => source.callTool(id.name, args, context),
      });
      known.set(definition, tool);
    }
    return tool;
  });
}

/** Text as a result. */
export function textResult(text: string, more: Omit<ToolResult, 'content'> = {}): ToolResult {
  return { ...more, content: [{ type: 'text', text }] };
}

/** Whatever a tool function returned, as a result: see {@link ToolOptions.call}. */
export function toToolResult(value: ToolReturn): ToolResult {
  if (typeof value === 'string') return textResult(value);
  if (value === undefined || value === null) return { content: [] };
  if (typeof value === 'object') {
    if ('content' in value && Array.isArray(value.content)) return value;
    return textResult(JSON.stringify(value), { structuredContent: value });
  }
  return textResult(String(value), { structuredContent: value });
}
