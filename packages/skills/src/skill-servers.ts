import { field, type FrontmatterData } from '@patchbay/files';
import type { EmbeddedServer, ServerConfig } from '@patchbay/protocols';
import stripJsonComments from 'strip-json-comments';

/** Where clients of the field look for MCP servers in a skill's frontmatter. */
const FIELDS = ['mcp_servers', 'mcpServers', 'mcp'] as const;

type Warn = (code: string, what: string) => void;

/**
 * The MCP servers that a skill brings: in `mcp.json` beside it (a map of servers, or one under `mcpServers`), else in its
 * frontmatter. A list of names (`mcp_servers: [github]`) brings nothing: see {@link neededServers}.
 */
export function readServers(
  data: FrontmatterData,
  mcpJson: string | undefined,
  warn: Warn,
): Readonly<Record<string, EmbeddedServer>> | undefined {
  const written =
    mcpJson === undefined
      ? FIELDS.map((name) => field(data, name)).find(isMap)
      : parseJson(mcpJson, warn);
  if (!isMap(written)) return undefined;
  const map = isMap(written['mcpServers']) ? written['mcpServers'] : written;
  const servers = Object.entries(map).flatMap(([name, value]) => {
    const server = toServer(value);
    if (server === undefined)
      warn(
        'invalid-config',
        `brings an MCP server "${name}" that has neither a \`command\` nor a \`url\`; it is left out`,
      );
    return server === undefined ? [] : [[name, server] as const];
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
export function neededServers(data: FrontmatterData): readonly string[] | undefined {
  const names = FIELDS.map((name) => field(data, name)).find(Array.isArray);
  const texts = names?.filter((name) => typeof name === 'string' && name !== '') as string[];
  return texts === undefined || texts.length === 0 ? undefined : [...new Set(texts)];
}

function toServer(value: unknown): EmbeddedServer | undefined {
  if (!isMap(value)) return undefined;
  const config = toConfig(value);
  const include = value['includeTools'];
  if (config === undefined || !Array.isArray(include)) return config && { config };
  return { config, includeTools: include.filter((name) => typeof name === 'string') };
}

function toConfig({
  command,
  args,
  env,
  cwd,
  url,
  headers,
  type,
}: Fields): ServerConfig | undefined {
  if (typeof command === 'string') {
    return {
      command,
      ...(Array.isArray(args) ? { args: args.map(String) } : {}),
      ...(isMap(env) ? { env: texts(env) } : {}),
      ...(typeof cwd === 'string' ? { cwd } : {}),
    };
  }
  if (typeof url !== 'string') return undefined;
  return {
    url,
    ...(type === 'sse' ? { type } : {}),
    ...(isMap(headers) ? { headers: texts(headers) } : {}),
  };
}

type Fields = Readonly<Record<string, unknown>>;

const texts = (map: Fields): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [key, String(value)]));

function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
