import { markdownCommands, type CommandHandlers } from '@patchbay/commands';
import { McpServerCapability } from '@patchbay/mcp';
import type {
  AnyCapability,
  ConnectionProvider,
  RegistrationScope,
  ServerConfig,
} from '@patchbay/protocols';
import { localSkills } from '@patchbay/skills/node';

import type { LoadedConfig } from './config.ts';
import type { CommandFolder, DefaultFolders } from './default-folders.ts';
import type { ServerEntry } from './server-entry.ts';

/** Something that a configuration wants registered. */
export interface Wanted {
  readonly id: string;
  readonly scope: RegistrationScope;
  /** Equal for what would be the same: it is left alone when a configuration is read again. Holds secrets. */
  readonly fingerprint: string;
  readonly server?: ServerConfig;
  make(): AnyCapability;
}

/** Everything that a configuration and the usual folders want registered. */
export function wantedOf(
  loaded: LoadedConfig,
  found: DefaultFolders,
  connections: ConnectionProvider,
  handlers: CommandHandlers = {},
): readonly Wanted[] {
  const { servers, skills, commands, agents } = loaded;
  return [
    ...wantedServers(servers, {}, connections),
    ...wantedSkills('configured-skills', skills.folders, 35, false, {}),
    ...(skills.defaults
      ? [
          ...wantedSkills('project-skills', found.skills.project, 30, true, {}),
          ...wantedSkills('user-skills', found.skills.user, 20, true, {}),
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
          ...wantedCommands('project-commands', found.commands.project, 30, true, handlers),
          ...wantedCommands('user-commands', found.commands.user, 20, true, handlers),
        ]
      : []),
    ...agents.flatMap((agent) => {
      const scope = { agent: agent.name, everySession: true } as const;
      return [
        ...wantedServers(agent.servers, scope, connections),
        ...wantedSkills('agent-skills', agent.skillFolders, 38, false, scope),
      ];
    }),
  ];
}

/** Servers that are neither off nor broken. */
export function wantedServers(
  entries: readonly ServerEntry[],
  scope: RegistrationScope,
  connections: ConnectionProvider,
): readonly Wanted[] {
  return entries.flatMap(({ name, origin, config, lazy, tools, include, exclude }) => {
    if (config === undefined) return [];
    const options = {
      lazy,
      ...(tools === undefined ? {} : { tools }),
      ...(include === undefined ? {} : { include }),
      ...(exclude === undefined ? {} : { exclude }),
    };
    return {
      id: name,
      scope,
      fingerprint: JSON.stringify([config, options]),
      server: config,
      make: () =>
        new McpServerCapability({ id: name, server: config, connections, origin, ...options }),
    };
  });
}

/** One source of skills for all of the folders; none for no folders. */
export function wantedSkills(
  id: string,
  folder: readonly string[],
  precedence: number,
  optional: boolean,
  scope: RegistrationScope,
): readonly Wanted[] {
  if (folder.length === 0) return [];
  const options = { id, folder, precedence, optional };
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
