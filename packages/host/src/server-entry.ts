import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';

import type {
  Problem,
  ServerAuthorization,
  ServerConfig,
  ToolDefinition,
} from '@patchbay/protocols';
import { z } from 'zod';

import { expand, type Placeholders, type Values } from './expand.ts';
import { suggestion } from './suggestion.ts';

/** One server as `mcp_servers`, `.mcp.json` and its kin write it: a program (`command`) or a server over HTTP (`url`). */
export interface McpServerEntry {
  /** How it is reached. Default: `stdio` for a `command`; for a `url` Streamable HTTP, and SSE if that is refused. */
  readonly type?: 'stdio' | 'http' | 'streamable-http' | 'streamableHttp' | 'sse' | undefined;
  /** A program, looked up in PATH; `./x` is meant from the file's folder. Never given to a shell. */
  readonly command?: string | undefined;
  readonly args?: readonly (string | number | boolean)[] | undefined;
  /** Added to a minimal environment; nothing else of the program's own is passed on. */
  readonly env?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** A file of `NAME=value` lines; `env` wins. */
  readonly envFile?: string | undefined;
  /** Where the program runs. Default: the file's folder. */
  readonly cwd?: string | undefined;
  readonly url?: string | undefined;
  readonly headers?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** How a user logs in to a server that asks for it. `false`, or nothing, is the same as `{}`: as the server says. */
  readonly oauth?:
    | false
    | {
        /** As the authorization server knows this program. Without it the program registers itself. */
        readonly clientId?: string | undefined;
        /** Needs the `issuer` that it is for. */
        readonly clientSecret?: string | undefined;
        readonly issuer?: string | undefined;
        /** What to ask for beside what the server wants; as a text, separated by spaces. */
        readonly scopes?: readonly string[] | string | undefined;
        /** As `scopes`. */
        readonly scope?: string | undefined;
        /** The port that a browser comes back to, where one was registered. */
        readonly callbackPort?: number | undefined;
      }
    | undefined;
  /** Off: listed, never started. */
  readonly disabled?: boolean | undefined;
  /** `false` is the same as `disabled: true`; off wins. */
  readonly enabled?: boolean | undefined;
  /** `host.ready()` fails without it. */
  readonly required?: boolean | undefined;
  /** Connect at the first call only; needs `tools`. */
  readonly lazy?: boolean | undefined;
  /** The tools of a lazy server, as they are known beforehand. */
  readonly tools?:
    | readonly {
        readonly name: string;
        readonly description?: string | undefined;
        readonly input_schema?: Readonly<Record<string, unknown>> | undefined;
        readonly inputSchema?: Readonly<Record<string, unknown>> | undefined;
      }[]
    | undefined;
  /** Names of tools to keep; `*` matches any run of characters. */
  readonly include_tools?: readonly string[] | undefined;
  /** As `include_tools`. */
  readonly includeTools?: readonly string[] | undefined;
  /** Names of tools to leave out; wins. */
  readonly exclude_tools?: readonly string[] | undefined;
  /** As `exclude_tools`. */
  readonly excludeTools?: readonly string[] | undefined;
  /** What becomes of its skills that cannot be verified. Default `refuse`. */
  readonly dynamic_skills?: 'refuse' | 'read' | undefined;
  /** Who shares its connection. Default `identity`. */
  readonly sharing?: 'identity' | 'everyone' | 'session' | undefined;
  /** Whether a call whose connection was lost is sent again. Default `safe`: only if it cannot run twice by that. */
  readonly replay?: 'safe' | 'always' | 'never' | undefined;
  /** All in milliseconds. */
  readonly timeouts?:
    | {
        readonly connect_ms?: number | undefined;
        readonly list_ms?: number | undefined;
        readonly call_ms?: number | undefined;
        readonly call_max_ms?: number | undefined;
      }
    | undefined;
}

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
  readonly dynamicSkills: 'refuse' | 'read' | undefined;
  /** What it wants, for people, as written; absent if nobody has to be asked. */
  readonly asks: readonly string[] | undefined;
  readonly problems: readonly Problem[];
}

/** What an entry is read with. */
export interface EntryContext {
  readonly values: Values;
  readonly placeholders: Placeholders;
  /** Relative commands and folders are meant from here: the folder of the file, never the program's own. */
  readonly base: string;
  readonly origin: string;
  /** The file came with a project: somebody is asked before the server is started. */
  readonly asks: boolean;
  /** A problem with file and line, for a field of the entry: an error leaves the server out, a warning does not. */
  readonly problem: (
    field: readonly string[],
    why: string,
    kind?: { readonly code?: Problem['code']; readonly severity?: Problem['severity'] },
  ) => Problem;
}

type Fail = (field: readonly string[], why: string, code?: Problem['code']) => void;

const texts = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean()]).transform(String),
);
const milliseconds = z.number().positive();
const names = z.array(z.string());

/** An entry whose values are texts. */
type Entry = Omit<McpServerEntry, 'args' | 'env' | 'headers'> & {
  readonly args?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
};

const entryShape = z.object({
  type: z
    .enum(['stdio', 'http', 'streamable-http', 'streamableHttp', 'sse'])
    .optional()
    .describe(
      'How it is reached. Default: stdio for a command; for a url Streamable HTTP, and SSE if that is refused.',
    ),
  command: z
    .string()
    .trim()
    .min(1)
    .optional()
    .describe(
      'A program, looked up in PATH; ./x is meant from the folder of this file. Never given to a shell.',
    ),
  args: z.array(z.union([z.string(), z.number(), z.boolean()]).transform(String)).optional(),
  env: texts
    .optional()
    .describe(
      'Added to a minimal environment. ${VAR}, ${VAR:-default} and ${input:id} are expanded.',
    ),
  envFile: z.string().min(1).optional().describe('A file of NAME=value lines; env wins.'),
  cwd: z
    .string()
    .min(1)
    .optional()
    .describe('Where the program runs. Default: the folder of this file.'),
  url: z.string().min(1).optional().describe('An http or https URL.'),
  headers: texts
    .optional()
    .describe('Sent with every request. ${VAR}, ${VAR:-default} and ${input:id} are expanded.'),
  oauth: z
    .union([
      z.literal(false),
      z.object({
        clientId: z.string().min(1).optional(),
        clientSecret: z.string().min(1).optional(),
        issuer: z.string().min(1).optional(),
        scopes: z.union([names, z.string()]).optional(),
        scope: z.string().optional(),
        callbackPort: z.number().int().min(1).max(65_535).optional(),
      }),
    ])
    .optional()
    .describe(
      'How a user logs in, where the server asks for it. ${VAR} and ${input:id} are expanded.',
    ),
  disabled: z.boolean().optional().describe('Off: listed, never started.'),
  enabled: z.boolean().optional().describe('false is the same as disabled: true; off wins.'),
  required: z.boolean().optional().describe('host.ready() fails without it.'),
  lazy: z.boolean().optional().describe('Connect at the first call only; needs tools.'),
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
  include_tools: names
    .optional()
    .describe('Names of tools to keep; * matches any run of characters.'),
  includeTools: names.optional(),
  exclude_tools: names.optional().describe('Names of tools to leave out; wins.'),
  excludeTools: names.optional(),
  dynamic_skills: z
    .enum(['refuse', 'read'])
    .optional()
    .describe('What becomes of its skills that cannot be verified. Default: refuse.'),
  sharing: z
    .enum(['identity', 'everyone', 'session'])
    .optional()
    .describe('Who shares its connection. Default: identity.'),
  replay: z
    .enum(['safe', 'always', 'never'])
    .optional()
    .describe(
      'Whether a call whose connection was lost is sent again. Default safe: only if it cannot run twice by that.',
    ),
  timeouts: z
    .object({
      connect_ms: milliseconds.optional(),
      list_ms: milliseconds.optional(),
      call_ms: milliseconds.optional(),
      call_max_ms: milliseconds.optional(),
    })
    .optional(),
});
/** Keys of other clients are accepted and mean nothing here. */
export const EntrySchema: z.ZodType<Entry, McpServerEntry> = entryShape;

const ENTRY_KEYS = Object.keys(entryShape.shape);
/** What else clients write into an entry, so that it is not taken for a slip of the pen. */
const FOREIGN_KEYS = ['description', 'timeout', 'dev', 'name', 'alwaysAllow', 'trust'];

/** Reads one entry. A broken one disables itself and says why; nothing is thrown, nothing is started. */
export async function readServerEntry(
  name: string,
  raw: unknown,
  context: EntryContext,
): Promise<ServerEntry> {
  const left = (problems: readonly Problem[], disabled = false): ServerEntry => ({
    name,
    origin: context.origin,
    disabled,
    required: (raw as McpServerEntry | null)?.required === true,
    lazy: false,
    tools: undefined,
    include: undefined,
    exclude: undefined,
    dynamicSkills: undefined,
    asks: undefined,
    problems,
  });
  const problems: Problem[] = [...slips(raw, context)];
  const fail: Fail = (field, why, code = 'invalid-config') =>
    void problems.push(context.problem(field, why, { code }));
  const parsed = EntrySchema.safeParse(raw);
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues)
      fail(path.map(String), `${message} (${path.join('.') || 'entry'})`);
    return left(problems);
  }
  const entry = parsed.data;
  // Off wins: an entry that says both is not started by mistake.
  if (entry.disabled === true || entry.enabled === false) return left([], true);

  const config = await toConfig(entry, context, fail);
  if (config === undefined) return left(problems);
  return {
    ...left(problems),
    config,
    lazy: entry.lazy ?? false,
    tools: entry.tools?.map(toDefinition),
    include: entry.include_tools ?? entry.includeTools,
    exclude: entry.exclude_tools ?? entry.excludeTools,
    dynamicSkills: entry.dynamic_skills,
    asks: context.asks ? wantsOf(entry) : undefined,
  };
}

const MAX_WANT = 500;

/** One thing each, as the file has it: nothing in it is filled in. Of values that may be secret only the names. */
function wantsOf({ command, args = [], url, cwd, env = {}, envFile, headers = {} }: Entry) {
  const written = [command, ...args, url, cwd, envFile, ...Object.values({ ...env, ...headers })];
  const filled = written.flatMap((text) => text?.match(PLACEHOLDER) ?? []);
  const [set, sent] = [Object.keys(env), Object.keys(headers)];
  const wants = [
    url === undefined ? `start ${[command, ...args].join(' ')}` : `connect to ${url}`,
    ...(cwd === undefined ? [] : [`run in ${cwd}`]),
    ...(set.length === 0 ? [] : [`run with ${set.join(', ')} set`]),
    ...(envFile === undefined ? [] : [`be given what is in ${envFile}`]),
    ...(sent.length === 0 ? [] : [`be sent the headers ${sent.join(', ')}`]),
    ...(filled.length === 0 ? [] : [`be given ${[...new Set(filled)].join(', ')}`]),
  ];
  return wants.map((want) => {
    const line = want.replaceAll(/\s+/g, ' ');
    const more = line.length - MAX_WANT;
    return more > 0 ? `${line.slice(0, MAX_WANT)} … (${more} characters more)` : line;
  });
}

/** What stands for something else, in any client's way to write it. */
const PLACEHOLDER = /\$\{[^}]*\}|\{(?:env|file):[^{}]+\}/g;

/** Unknown keys that are almost known ones. */
function slips(raw: unknown, context: EntryContext): readonly Problem[] {
  if (typeof raw !== 'object' || raw === null) return [];
  return Object.keys(raw).flatMap((key) => {
    if (ENTRY_KEYS.includes(key) || FOREIGN_KEYS.includes(key)) return [];
    const meant = suggestion(key, ENTRY_KEYS);
    return meant === ''
      ? []
      : [context.problem([key], `\`${key}\` means nothing here${meant}`, { severity: 'warning' })];
  });
}

/** The configuration; `undefined` if something is wrong with it, which was told then. */
async function toConfig(
  entry: Entry,
  context: EntryContext,
  fail: Fail,
): Promise<ServerConfig | undefined> {
  const { base } = context;
  const { command, url, args = [], env = {}, envFile, headers = {} } = entry;
  const { cwd, sharing, replay, timeouts } = entry;
  let complete = true;
  const failed: Fail = (field, why, code) => {
    complete = false;
    fail(field, why, code);
  };
  const fill = async (field: readonly string[], text: string): Promise<string> => {
    const expanded = await expand(text, context.values, context.placeholders);
    if ('text' in expanded) return expanded.text;
    const missing = expanded.missing.join(', ');
    const remedy =
      context.placeholders === 'shell' ? 'Set it, or write ${NAME:-default}' : 'Set it';
    const why = `${field.join('.')} needs ${missing}, which is not set. ${remedy}`;
    failed(field, why, 'env-missing');
    return '';
  };
  const fillAll = async (field: string, map: Readonly<Record<string, string>>) => {
    const filled: Record<string, string> = {};
    for (const [key, value] of Object.entries(map)) filled[key] = await fill([field, key], value);
    return filled;
  };
  const options = {
    ...(sharing === undefined ? {} : { sharing }),
    ...(replay === undefined ? {} : { replay }),
    ...(timeouts === undefined ? {} : { timeouts: toTimeouts(timeouts) }),
  };
  const overHttp = entry.type !== undefined && entry.type !== 'stdio';
  if (command !== undefined && url !== undefined) {
    fail([], 'it has both `command` and `url`; keep one of them');
    return undefined;
  }
  if (command !== undefined && !overHttp) {
    const program = await fill(['command'], command);
    const filled: string[] = [];
    for (const [i, arg] of args.entries()) filled.push(await fill(['args', String(i)], arg));
    const file = envFile === undefined ? undefined : await fill(['envFile'], envFile);
    const config: ServerConfig = {
      ...options,
      type: 'stdio',
      command: /^\.{1,2}[\\/]/.test(program) ? resolve(base, program) : program,
      args: filled,
      env: {
        ...(file === undefined ? {} : await variablesOf(resolve(base, file), failed)),
        ...(await fillAll('env', env)),
      },
      cwd: cwd === undefined ? base : resolve(base, await fill(['cwd'], cwd)),
    };
    return complete ? config : undefined;
  }
  if (url !== undefined && entry.type !== 'stdio') {
    const auth = await toAuth(entry.oauth, fill, failed);
    const config: ServerConfig = {
      ...options,
      ...(auth === undefined ? {} : { auth }),
      ...(entry.type === 'sse' ? { type: 'sse' as const } : {}),
      ...(entry.type !== undefined && entry.type !== 'sse' ? { type: 'http' as const } : {}),
      url: await fill(['url'], url),
      headers: await fillAll('headers', headers),
    };
    return complete ? config : undefined;
  }
  fail([], 'it needs a `command` (a program) or a `url` (a server over HTTP) that fits its `type`');
  return undefined;
}

async function variablesOf(file: string, fail: Fail): Promise<Readonly<Record<string, string>>> {
  try {
    const parsed = parseEnv(await readFile(file, 'utf8'));
    return Object.fromEntries(
      Object.entries(parsed).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
    );
  } catch (error) {
    fail(['envFile'], `envFile ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
    return {};
  }
}

/** `undefined`: nothing but what the server says. */
async function toAuth(
  oauth: Entry['oauth'],
  fill: (field: readonly string[], text: string) => Promise<string>,
  fail: Fail,
): Promise<ServerAuthorization | undefined> {
  if (oauth === undefined || oauth === false) return undefined;
  const { clientId, clientSecret, issuer, scope = '', callbackPort } = oauth;
  const { scopes = scope } = oauth;
  const wanted = typeof scopes === 'string' ? scopes.split(/\s+/).filter(Boolean) : scopes;
  if (clientSecret !== undefined && issuer === undefined)
    fail(
      ['oauth', 'clientSecret'],
      'oauth.clientSecret needs oauth.issuer, the authorization server that it is for: the server could have it sent anywhere',
    );
  const filled = async (field: string, text: string | undefined) =>
    text === undefined ? {} : { [field]: await fill(['oauth', field], text) };
  const auth: ServerAuthorization = {
    ...(await filled('clientId', clientId)),
    ...(await filled('clientSecret', clientSecret)),
    ...(await filled('issuer', issuer)),
    ...(wanted.length === 0 ? {} : { scopes: wanted }),
    ...(callbackPort === undefined ? {} : { callbackPort }),
  };
  return Object.keys(auth).length === 0 ? undefined : auth;
}

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
