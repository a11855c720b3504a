/** What a server gets of our environment beside what its configuration names. (MCP specification "stdio") */
const INHERITED = {
  win32: `APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT
    TEMP TMP USERNAME USERPROFILE`,
  posix: 'HOME LOGNAME PATH SHELL TERM USER',
} as const;

/**
 * The environment of a child: a minimal one, and what `configured` names. Shell functions (`() { …`) are never passed on,
 * nor is anything that changes how a runtime starts (`NODE_OPTIONS`, `LD_PRELOAD`) unless it is configured.
 */
export function childEnvironment(
  configured: Readonly<Record<string, string>> = {},
  from: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const inherited = INHERITED[platform === 'win32' ? 'win32' : 'posix'].split(/\s+/);
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(from)) {
    const key = platform === 'win32' ? name.toUpperCase() : name;
    if (value !== undefined && inherited.includes(key) && !value.startsWith('()'))
      environment[name] = value;
  }
  return { ...environment, ...configured };
}
