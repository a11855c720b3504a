import { PatchbayError, type ConnectionProvider, type ServerConfig } from '@patchbay/protocols';

import { expand, type Values } from './expand.ts';

/**
 * Connections for configurations that are as somebody wrote them, with placeholders: filled in at each use, so that nothing is
 * asked for before and no value is kept where it could be shown. For the servers that skills bring.
 */
export function filledConnections(
  connections: ConnectionProvider,
  values: Values,
): ConnectionProvider {
  const filled = new WeakMap<ServerConfig, ServerConfig>();
  const status = connections.status?.bind(connections);
  return {
    /** @throws PatchbayError `env-missing` naming what is not set, and what the connections throw */
    acquire: async (config, options) => {
      const now = await fill(config, values);
      filled.set(config, now);
      return connections.acquire(now, options);
    },
    ...(status === undefined
      ? {}
      : { status: (config, options) => status(filled.get(config) ?? config, options) }),
  };
}

async function fill(config: ServerConfig, values: Values): Promise<ServerConfig> {
  const missing = new Set<string>();
  const text = async (written: string): Promise<string> => {
    const expanded = await expand(written, values);
    if ('text' in expanded) return expanded.text;
    for (const name of expanded.missing) missing.add(name);
    return '';
  };
  const map = async (written: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      await Promise.all(
        Object.entries(written).map(async ([key, value]) => [key, await text(value)] as const),
      ),
    );
  let now = config;
  if ('command' in config) {
    const { command, args, env, cwd } = config;
    now = {
      ...config,
      command: await text(command),
      ...(args === undefined ? {} : { args: await Promise.all(args.map(text)) }),
      ...(env === undefined ? {} : { env: await map(env) }),
      ...(cwd === undefined ? {} : { cwd: await text(cwd) }),
    };
  } else if ('url' in config) {
    const { url, headers } = config;
    now = {
      ...config,
      url: await text(url),
      ...(typeof headers === 'object' ? { headers: await map(headers) } : {}),
    };
  }
  if (missing.size === 0) return now;
  throw new PatchbayError(
    'env-missing',
    `It needs ${[...missing].join(', ')}, which is not set. Set it, or write \${NAME:-default}.`,
  );
}
