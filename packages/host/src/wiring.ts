import { markdownCommands, type CommandHandlers } from '@patchbay/commands';
import { McpServerCapability } from '@patchbay/mcp';
import type {
  AnyCapability,
  ConnectionProvider,
  RegistrationScope,
  ServerConfig,
  TrustRequest,
} from '@patchbay/protocols';
import { localSkills, type LocalSkillsOptions } from '@patchbay/skills/node';

import type { LoadedConfig } from './config.ts';
import type { CommandFolder, DefaultFolders } from './default-folders.ts';
import type { ServerEntry } from './server-entry.ts';
import { serverRequest, type Trust } from './trust.ts';

/** Something that a configuration wants registered. */
export interface Wanted {
  readonly id: string;
  readonly scope: RegistrationScope;
  /** Equal for what would be the same: it is left alone when a configuration is read again. Holds secrets. */
  readonly fingerprint: string;
  readonly server?: ServerConfig;
  make(): AnyCapability;
}

/** What things are made with. */
export interface Means {
  readonly connections: ConnectionProvider;
  /** Stands between what comes with a project and whatever it wants to start. */
  readonly trust: Trust;
  readonly handlers?: CommandHandlers | undefined;
}

/** Everything that a configuration and the usual folders want registered. */
export function wantedOf(
  loaded: LoadedConfig,
  found: DefaultFolders,
  { connections, trust, handlers = {} }: Means,
): readonly Wanted[] {
  const { servers, skills, commands, agents } = loaded;
  return [
    ...wantedServers(servers, {}, { connections, trust }),
    ...wantedSkills('configured-skills', skills.folders, { precedence: 35 }, {}),
    ...(skills.defaults
      ? [
          ...wantedSkills(
            'project-skills',
            found.skills.project,
            { precedence: 30, optional: true, trusted: 'ask' },
            {},
          ),
          ...wantedSkills('user-skills', found.skills.user, { precedence: 20, optional: true }, {}),
        ]
      : []),
    ...wantedCommands(
      'configured-commands',
      commands.folders.map((folder) => ({ folder })),
      35,
      false,
      handlers,
    ),
    ...(commands.defaults
      ? [
          ...wantedCommands(
            'project-commands',
            found.commands.project,
            30,
            true,
            trust.guardHandlers(handlers),
          ),
          ...wantedCommands('user-commands', found.commands.user, 20, true, handlers),
        ]
      : []),
    ...agents.flatMap((agent) => {
      const scope = { agent: agent.name, everySession: true } as const;
      return [
        ...wantedServers(agent.servers, scope, { connections, trust }),
        ...wantedSkills('agent-skills', agent.skillFolders, { precedence: 38 }, scope),
      ];
    }),
  ];
}

/** Servers that are neither off nor broken. */
export function wantedServers(
  entries: readonly ServerEntry[],
  scope: RegistrationScope,
  { connections, trust }: Pick<Means, 'connections' | 'trust'>,
): readonly Wanted[] {
  return entries.flatMap((entry) => {
    const { name, origin, config, asks } = entry;
    if (config === undefined) return [];
    const options = optionsOf(entry);
    const request = trustRequestOf(entry);
    const own = request === undefined ? connections : trust.guard(connections, request);
    return {
      id: name,
      scope,
      fingerprint: JSON.stringify([config, options, asks]),
      server: config,
      make: () =>
        new McpServerCapability({ id: name, server: config, connections: own, origin, ...options }),
    };
  });
}

/** What is asked before a server starts; absent where nobody has to be asked. */
export function trustRequestOf(entry: ServerEntry): TrustRequest | undefined {
  const { name, origin, config, asks } = entry;
  if (config === undefined || asks === undefined) return undefined;
  return serverRequest(name, origin, asks, JSON.stringify([config, optionsOf(entry)]));
}

const optionsOf = ({ lazy, tools, include, exclude, dynamicSkills }: ServerEntry) => ({
  lazy,
  ...(tools === undefined ? {} : { tools }),
  ...(include === undefined ? {} : { include }),
  ...(exclude === undefined ? {} : { exclude }),
  ...(dynamicSkills === undefined ? {} : { dynamicSkills }),
});

/** One source of skills for all of the folders; none for no folders. */
export function wantedSkills(
  id: string,
  folder: readonly string[],
  about: Pick<LocalSkillsOptions, 'precedence' | 'optional' | 'trusted'>,
  scope: RegistrationScope,
): readonly Wanted[] {
  if (folder.length === 0) return [];
  const options = { id, folder, ...about };
  return [{ id, scope, fingerprint: JSON.stringify(options), make: () => localSkills(options) }];
}

function wantedCommands(
  id: string,
  folders: readonly (Pick<CommandFolder, 'folder'> & Partial<CommandFolder>)[],
  precedence: number,
  optional: boolean,
  handlers: CommandHandlers,
): readonly Wanted[] {
  return folders.map((folder, i) => {
    const options = { id: `${id}-${i + 1}`, ...folder, precedence, optional };
    return {
      id: options.id,
      scope: {},
      fingerprint: JSON.stringify(options),
      make: () => markdownCommands({ ...options, ...handlers }),
    };
  });
}
