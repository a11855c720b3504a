/** The servers of OpenCode's configuration: `mcp`, or `mcp.servers` in its second version. */
export function openCodeServers(value: unknown): {
  readonly path: readonly string[];
  readonly servers: Readonly<Record<string, unknown>>;
} {
  const mcp = asRecord(asRecord(value)?.['mcp']);
  const inner = asRecord(mcp?.['servers']);
  // A server may be called "servers".
  if (inner !== undefined && !('type' in inner))
    return { path: ['mcp', 'servers'], servers: inner };
  return { path: ['mcp'], servers: mcp ?? {} };
}

/** An entry of OpenCode (`type: local | remote`, the command as one list) as everybody else writes it. */
export function openCodeEntry(raw: unknown): unknown {
  const entry = asRecord(raw);
  if (entry === undefined) return raw;
  const { type, command, environment, timeout, ...rest } = entry;
  const { url, headers, cwd, enabled, disabled } = rest;
  const times = timeout === undefined ? undefined : { connect_ms: timeout, list_ms: timeout };
  const remote = type === 'remote' || (type === undefined && url !== undefined);
  const own = remote
    ? { type: 'http', url, headers }
    : {
        type: type === 'local' || type === undefined ? 'stdio' : type,
        command: Array.isArray(command) ? (command[0] as unknown) : command,
        args: Array.isArray(command) ? command.slice(1) : undefined,
        env: environment,
        cwd,
      };
  return Object.fromEntries(
    Object.entries({ ...own, enabled, disabled, timeouts: times }).filter(
      ([, value]) => value !== undefined,
    ),
  );
}

/** An object that is no list, or nothing. */
export const asRecord = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
