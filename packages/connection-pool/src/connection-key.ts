import {
  PatchbayError,
  type AcquireOptions,
  type HttpServerConfig,
  type ServerAuthorization,
  type ServerConfig,
  type StdioServerConfig,
} from '@patchbay/protocols';

export const isStdio = (config: ServerConfig): config is StdioServerConfig => 'command' in config;
export const isHttp = (config: ServerConfig): config is HttpServerConfig => 'url' in config;

/**
 * What makes two requests share one connection: the resolved configuration, and whoever its `sharing` keeps apart. It
 * holds environment and headers: only its hash may be shown.
 * @throws PatchbayError `identity-required` for headers of an identity that nobody gave, `invalid-config`
 */
export function connectionKey(
  config: ServerConfig,
  headers: Readonly<Record<string, string>>,
  asker: AcquireOptions,
  objectId: (object: object) => number,
): string {
  const { handlers } = config;
  return JSON.stringify([
    transportKey(config, headers, objectId),
    audience(config, asker),
    handlers === undefined ? 0 : objectId(handlers),
  ]);
}

function transportKey(
  config: ServerConfig,
  headers: Readonly<Record<string, string>>,
  objectId: (object: object) => number,
): readonly unknown[] {
  if (isStdio(config))
    return ['stdio', config.command, config.args ?? [], sorted(config.env ?? {}), config.cwd ?? ''];
  if (isHttp(config)) {
    const fetchId = config.fetch === undefined ? 0 : objectId(config.fetch);
    const auth = authKey(config.auth, objectId);
    return ['http', config.type ?? '', config.url, sorted(headers), fetchId, auth];
  }
  if ('client' in config) return ['client', objectId(config.client)];
  throw new PatchbayError('invalid-config', 'A server needs a `command`, a `url` or a `client`.');
}

function audience(config: ServerConfig, { scope, identity }: AcquireOptions): readonly unknown[] {
  const { sharing = 'identity' } = config;
  if (sharing === 'everyone') return ['everyone'];
  if (sharing === 'session') return ['session', scope?.session ?? '', identity?.id ?? ''];
  return ['identity', identity?.id ?? ''];
}

/** Two that say the same are the same. Holds secrets. */
export function authKey(
  auth: ServerAuthorization | undefined,
  objectId: (object: object) => number,
): string {
  // Of most there is none, and it is asked for each call.
  if (auth === undefined) return '[]';
  const sorted = Object.entries(auth).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(sorted, (_name, value: unknown) =>
    typeof value === 'function' ? objectId(value) : value,
  );
}

const sorted = (map: Readonly<Record<string, string>>): readonly (readonly [string, string])[] =>
  Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1));

/** What people call a server: its label, and what is started or asked. Without secrets. */
export function serverName(config: ServerConfig): string {
  const target = isStdio(config)
    ? config.command
    : isHttp(config) && URL.canParse(config.url)
      ? new URL(config.url).origin
      : 'the injected client';
  return config.label === undefined ? target : `"${config.label}" (${target})`;
}
