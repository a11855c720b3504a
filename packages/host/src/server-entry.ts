import { isAbsolute, resolve } from 'node:path';

import {
  PatchbayError,
  problemFrom,
  type Problem,
  type ServerConfig,
  type ToolDefinition,
} from '@patchbay/protocols';
import { z } from 'zod';

import { expand, type Values } from './expand.ts';

/** A server of a configuration, ready to be plugged in or with the reason why it is not. */
export interface ServerEntry {
  /** The capability id: the key in the file. */
  readonly name: string;
  /** `.mcp.json:12`, or `code`. */
  readonly origin: string;
  /** Absent if it is disabled or broken. */
  readonly config?: ServerConfig;
  readonly disabled: boolean;
  readonly required: boolean;
  readonly lazy: boolean;
  readonly tools: readonly ToolDefinition[] | undefined;
  readonly include: readonly string[] | undefined;
  readonly exclude: readonly string[] | undefined;
  readonly problems: readonly Problem[];
}

/** What an entry is read with. */
export interface EntryContext {
  readonly values: Values;
  /** Relative commands and folders are meant from here: the folder of the file, never the program's own. */
  readonly base: string;
  readonly origin: string;
  /** A problem with file and line, for a field of the entry. */
  readonly problem: (code: 'invalid-config', field: readonly string[], why: string) => Problem;
}

const texts = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean()]).transform(String),
);
const positive = z.number().positive();

/** One server as the field writes it; keys of other clients are accepted and mean nothing here. */
const EntrySchema = z.object({
  type: z.enum(['stdio', 'http', 'streamable-http', 'streamableHttp', 'sse']).optional(),
  command: z.string().trim().min(1).optional(),
  args: z.array(z.union([z.string(), z.number(), z.boolean()]).transform(String)).optional(),
  env: texts.optional(),
  cwd: z.string().min(1).optional(),
  url: z.string().min(1).optional(),
  headers: texts.optional(),
  disabled: z.boolean().optional(),
  enabled: z.boolean().optional(),
  required: z.boolean().optional(),
  lazy: z.boolean().optional(),
  tools: z
    .array(
      z.object({
        name: z.string().min(1),
        description: z.string().optional(),
        input_schema: z.record(z.string(), z.unknown()).optional(),
        inputSchema: z.record(z.string(), z.unknown()).optional(),
      }),
    )
    .optional(),
  include_tools: z.array(z.string()).optional(),
  includeTools: z.array(z.string()).optional(),
  exclude_tools: z.array(z.string()).optional(),
  excludeTools: z.array(z.string()).optional(),
  sharing: z.enum(['identity', 'everyone', 'session']).optional(),
  replay: z.enum(['safe', 'always', 'never']).optional(),
  timeouts: z
    .object({
      connect_ms: positive.optional(),
      list_ms: positive.optional(),
      call_ms: positive.optional(),
      call_max_ms: positive.optional(),
    })
    .optional(),
});
type Entry = z.infer<typeof EntrySchema>;

/** Reads one entry. A broken one disables itself and says why; nothing is thrown, nothing is started. */
export function readServerEntry(name: string, raw: unknown, context: EntryContext): ServerEntry {
  const nothing = {
    lazy: false,
    required: false,
    tools: undefined,
    include: undefined,
    exclude: undefined,
  };
  const broken = (problems: readonly Problem[]): ServerEntry => ({
    ...nothing,
    name,
    origin: context.origin,
    disabled: false,
    problems,
  });
  const parsed = EntrySchema.safeParse(raw);
  if (!parsed.success) {
    return broken(
      parsed.error.issues.map((issue) =>
        context.problem(
          'invalid-config',
          issue.path.map(String),
          `${issue.message} (${issue.path.join('.') || 'entry'})`,
        ),
      ),
    );
  }
  const entry = parsed.data;
  // Off wins: an entry that says both is not started by mistake.
  if (entry.disabled === true || entry.enabled === false) return { ...broken([]), disabled: true };

  const missing: Problem[] = [];
  const fill = (field: readonly string[], text: string): string => {
    const expanded = expand(text, context.values);
    if ('text' in expanded) return expanded.text;
    const names = expanded.missing.join(', ');
    missing.push(
      context.problem(
        'invalid-config',
        field,
        `${field.join('.')} needs ${names}, which is not set. Set it, or write \${NAME:-default}`,
      ),
    );
    return '';
  };
  const config = toConfig(entry, context, fill);
  if (missing.length > 0) return broken(missing);
  if (typeof config === 'string') return broken([context.problem('invalid-config', [], config)]);
  return {
    name,
    origin: context.origin,
    config,
    disabled: false,
    required: entry.required ?? false,
    lazy: entry.lazy ?? false,
    tools: entry.tools?.map(toDefinition),
    include: entry.include_tools ?? entry.includeTools,
    exclude: entry.exclude_tools ?? entry.excludeTools,
    problems: [],
  };
}

/** The configuration, or what is wrong with it. */
function toConfig(
  entry: Entry,
  { base }: EntryContext,
  fill: (field: readonly string[], text: string) => string,
): ServerConfig | string {
  const { command, url, args = [], env = {}, cwd, headers = {}, sharing, replay, timeouts } = entry;
  const fillAll = (field: string, map: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(map).map(([key, value]) => [key, fill([field, key], value)]));
  const options = {
    ...(sharing === undefined ? {} : { sharing }),
    ...(replay === undefined ? {} : { replay }),
    ...(timeouts === undefined ? {} : { timeouts: toTimeouts(timeouts) }),
  };
  const overHttp = entry.type !== undefined && entry.type !== 'stdio';
  if (command !== undefined && url !== undefined)
    return 'it has both `command` and `url`; keep one of them';
  if (command !== undefined && !overHttp) {
    const program = fill(['command'], command);
    return {
      ...options,
      type: 'stdio',
      command: /^\.{1,2}[\\/]/.test(program) ? resolve(base, program) : program,
      args: args.map((arg, i) => fill(['args', String(i)], arg)),
      env: fillAll('env', env),
      cwd: cwd === undefined ? base : fromBase(base, fill(['cwd'], cwd)),
    };
  }
  if (url !== undefined && entry.type !== 'stdio') {
    return {
      ...options,
      ...(entry.type === 'sse' ? { type: 'sse' as const } : {}),
      ...(entry.type !== undefined && entry.type !== 'sse' ? { type: 'http' as const } : {}),
      url: fill(['url'], url),
      headers: fillAll('headers', headers),
    };
  }
  return 'it needs a `command` (a program) or a `url` (a server over HTTP) that fits its `type`';
}

const fromBase = (base: string, path: string): string =>
  isAbsolute(path) ? path : resolve(base, path);

function toTimeouts(given: NonNullable<Entry['timeouts']>): NonNullable<ServerConfig['timeouts']> {
  const { connect_ms, list_ms, call_ms, call_max_ms } = given;
  return {
    ...(connect_ms === undefined ? {} : { connectMs: connect_ms }),
    ...(list_ms === undefined ? {} : { listMs: list_ms }),
    ...(call_ms === undefined ? {} : { callMs: call_ms }),
    ...(call_max_ms === undefined ? {} : { callMaxMs: call_max_ms }),
  };
}

function toDefinition(tool: NonNullable<Entry['tools']>[number]): ToolDefinition {
  const { name, description, inputSchema, input_schema } = tool;
  return {
    name,
    ...(description === undefined ? {} : { description }),
    inputSchema: inputSchema ?? input_schema ?? { type: 'object' },
  };
}

/** A problem of a configuration that has no file: one given in code. */
export function codeProblem(source: string, field: readonly string[], why: string): Problem {
  const where = field.length === 0 ? '' : ` (${field.join('.')})`;
  return problemFrom(
    source,
    new PatchbayError('invalid-config', `"${source}" is left out${where}: ${why}.`),
  );
}
