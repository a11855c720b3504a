import { basename } from 'node:path';

import {
  isCommandResource,
  isSkillResource,
  isToolSource,
  type Capability,
  type ExtensionView,
} from '@patchbay/protocols';

import type { Project } from './project.ts';
import { check, showTable, type Check } from './show.ts';

/** What the configuration names. Nothing of it has been started. */
export function showOpened({ host }: Project): readonly Check[] {
  const { files, servers, connections, problems } = host.inspect();
  console.log(`  read ${files.map((file) => basename(file)).join(' and ')}`);
  for (const { id, origin, state } of servers) console.log(`  server ${id} (${origin}): ${state}`);
  return [
    check(
      'both files are read, and every server in them is right',
      files.length === 2 && servers.every(({ state }) => state === 'on') && problems.length === 0,
      problems.map(({ message }) => message).join(' '),
    ),
    check(
      'nothing is started before it is needed',
      connections.every(({ pid }) => pid === undefined),
    ),
  ];
}

/** What is plugged in, as one scope sees it: every source that has something, and every server. */
export async function showPluggedIn(
  { host }: Project,
  view: ExtensionView,
): Promise<readonly Check[]> {
  const { tools, skills } = await view.compile();
  const commands = await view.commands.list();
  const inspected = host.inspect();
  const origins = new Map(inspected.servers.map(({ id, origin }) => [id, origin]));
  const connections = new Map(
    inspected.connections.map((connection) => [connection.server, connection]),
  );
  const capabilities = host.registry.query(
    view.scope,
    (capability): capability is Capability => capability !== undefined,
  );
  const rows = capabilities.flatMap((capability) => {
    const { id } = capability;
    const count = {
      tools: tools.filter((tool) => tool.id.capability === id).length,
      skills: skills.filter(({ source }) => source === id).length,
      commands: commands.filter(({ source }) => source === id).length,
    };
    if (count.tools + count.skills + count.commands === 0 && !origins.has(id)) return [];
    const row = inspected.capabilities.find((item) => item.id === id);
    const connection = connections.get(id);
    return [
      [
        id,
        kindOf(capability),
        origins.get(id) ??
          (skills.find(({ source }) => source === id)?.origin ?? '').split('/').slice(-3).join('/'),
        row?.scope ?? '',
        connection?.state ?? row?.status.state ?? '',
        String(connection?.pid ?? ''),
        `${count.tools} tools, ${count.skills} skills, ${count.commands} commands`,
      ],
    ];
  });
  showTable(['source', 'kind', 'origin', 'scope', 'state', 'pid', 'gives'], rows);
  const kinds = new Set(rows.map(([, kind]) => kind));
  const all = ['MCP server', 'skills', 'commands'];
  return [
    check(
      'servers over stdio and HTTP, skills of four places and command files are plugged in',
      all.every((kind) => kinds.has(kind)),
      [...kinds].join(),
    ),
    check(
      'skills that npm packages ship are in the catalogue',
      skills.filter(({ origin }) => origin.includes('node_modules')).length > 10,
      String(skills.length),
    ),
    check(
      'the server over HTTP gives tools too',
      tools.some(({ id }) => id.capability === 'remote'),
    ),
  ];
}

function kindOf(capability: Capability): string {
  if (isToolSource(capability)) return 'MCP server';
  if (isSkillResource(capability)) return 'skills';
  return isCommandResource(capability) && capability.tools === undefined ? 'commands' : 'catalogue';
}
