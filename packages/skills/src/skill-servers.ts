import { resolve } from 'node:path';

import { field, listField, type FrontmatterData, type FrontmatterValue } from '@patchbay/files';
import type { EmbeddedServer, ServerConfig } from '@patchbay/protocols';
import stripJsonComments from 'strip-json-comments';

/** Where clients of the field look for MCP servers in a skill's frontmatter. */
const FIELDS = ['mcp_servers', 'mcpServers', 'mcp'] as const;

/** What stands in each of them. */
export type ServerFields = readonly (FrontmatterValue | undefined)[];

export const serverFields = (data: FrontmatterData): ServerFields =>
  FIELDS.map((name) => field(data, name));

type Warn = (code: string, what: string) => void;

/** What lies beside a skill. */
export interface ServersFile {
  /** The mcp.json beside it. */
  readonly mcpJson?: string | undefined;
  /** The skill's own folder, from which `./` and `../` are meant. Absent for a skill that lies in none. */
  readonly base?: string | undefined;
}

/**
 * The MCP servers that a skill brings: in `mcp.json` beside it (a map of servers, or one under `mcpServers`), else in its
 * frontmatter. What is switched off is left out. A list of names (`mcp_servers: [github]`) brings nothing: see
 * {@link neededServers}.
 */
export function readServers(
  fields: ServerFields,
  { mcpJson, base }: ServersFile,
  warn: Warn,
): Readonly<Record<string, EmbeddedServer>> | undefined {
  const written = mcpJson === undefined ? fields.find(isMap) : parseJson(mcpJson, warn);
  if (!isMap(written)) return undefined;
  const map = isMap(written['mcpServers']) ? written['mcpServers'] : written;
  const servers = Object.entries(map).flatMap(([name, value]) => {
    if (isMap(value) && isOff(value)) return [];
    const server = toServer(value, base);
    if (typeof server !== 'string') return [[name, server] as const];
    warn('invalid-config', `brings an MCP server "${name}" that ${server}; it is left out`);
    return [];
  });
  return servers.length === 0 ? undefined : Object.fromEntries(servers);
}

/** As its neighbours write it: with comments and trailing commas. What is broken brings nothing, not half of it. */
function parseJson(text: string, warn: Warn): unknown {
  try {
    const plain = stripJsonComments(text.replace(/^\uFEFF/, ''), { trailingCommas: true });
    const value: unknown = JSON.parse(plain);
    if (isMap(value)) return value;
  } catch {
    // What the parser says quotes the file, and so its secrets.
  }
  warn(
    'invalid-config',
    'brings an mcp.json that is no JSON object; its servers are left out. Mend it',
  );
  return undefined;
}

/** Ids that a list names: `mcp_servers: [github]`. */
export function neededServers(fields: ServerFields): readonly string[] | undefined {
  const names = fields.find(Array.isArray);
  const texts = names?.filter((name) => typeof name === 'string' && name !== '') as string[];
  return texts === undefined || texts.length === 0 ? undefined : [...new Set(texts)];
}

/** The server, or what is wrong with it. */
function toServer(value: unknown, base: string | undefined): EmbeddedServer | string {
  if (!isMap(value)) return 'is no map';
  if (value['args'] !== undefined && !Array.isArray(value['args']))
    return 'has `args` that are no list';
  const config = toConfig(value, base);
  if (config === undefined) return 'has neither a `command` nor a `url`';
  const includeTools = listField(value as FrontmatterData, 'includeTools');
  return { config, ...(includeTools === undefined ? {} : { includeTools }) };
}

function toConfig(
  { command, args, env, cwd, url, headers, type }: Fields,
  base: string | undefined,
): ServerConfig | undefined {
  if (typeof command === 'string') {
    const words = Array.isArray(args) ? args.map(String) : undefined;
    const folder = folderOf([command, ...(words ?? [])], cwd, base);
    return {
      command: base !== undefined && isRelative(command) ? resolve(base, command) : command,
      ...(words === undefined ? {} : { args: words }),
      ...(isMap(env) ? { env: texts(env) } : {}),
      ...(folder === undefined ? {} : { cwd: folder }),
    };
  }
  if (typeof url !== 'string') return undefined;
  return {
    url,
    ...(type === 'sse' ? { type } : {}),
    ...(isMap(headers) ? { headers: texts(headers) } : {}),
  };
}

/** A server that is given something of its skill runs in the skill's folder; any other is shared with all who name it. */
function folderOf(
  words: readonly string[],
  cwd: unknown,
  base: string | undefined,
): string | undefined {
  if (typeof cwd === 'string') return base === undefined ? cwd : resolve(base, cwd);
  return words.some(isRelative) ? base : undefined;
}

const isRelative = (path: string): boolean => /^\.{1,2}[\\/]/.test(path);

/** Off wins, as in the files of clients. Frontmatter has text only. */
const isOff = ({ disabled, enabled }: Fields): boolean =>
  String(disabled) === 'true' || String(enabled) === 'false';

type Fields = Readonly<Record<string, unknown>>;

const texts = (map: Fields): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [key, String(value)]));

function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
