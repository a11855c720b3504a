import { cp, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { AnyCapability, Problem, StdioServerConfig } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';

/** Everything that the demo plugs together, over a copy of its project in a temporary folder. */
export interface Board extends AsyncDisposable {
  /** The copy of the project: the only folder that the file server may touch. */
  readonly folder: string;
  readonly registry: ExtensionRegistry;
  readonly pool: ConnectionPool;
  readonly server: StdioServerConfig;
  readonly problems: readonly Problem[];
}

/** What a test changes to see the demo fail. */
export interface BoardChanges {
  readonly skills?: boolean;
  /** Replaces the file server's capability. */
  readonly files?: (server: McpServerCapability) => AnyCapability;
  /** Replaces the skill manager. */
  readonly manager?: AnyCapability;
}

const here = dirname(fileURLToPath(import.meta.url));

export async function makeBoard(changes: BoardChanges = {}): Promise<Board> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-demo-')));
  await cp(join(here, '../project'), folder, { recursive: true });

  const problems: Problem[] = [];
  const pool = new ConnectionPool();
  const registry = new ExtensionRegistry({ onProblem: (problem) => void problems.push(problem) });
  const server: StdioServerConfig = { command: process.execPath, args: [fileServer(), folder] };
  const files = new McpServerCapability({ id: 'files', server, connections: pool });
  registry.register(changes.files?.(files) ?? files);
  if (changes.skills !== false)
    registry.register(localSkills({ id: 'house', folder: join(here, '../skills') }));
  registry.register(changes.manager ?? new SkillManagerCapability());

  return {
    folder,
    registry,
    pool,
    server,
    problems,
    [Symbol.asyncDispose]: async () => {
      await registry.close();
      await pool.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The locked copy of the reference file server: nothing is downloaded. */
function fileServer(): string {
  const manifest = createRequire(import.meta.url).resolve(
    '@modelcontextprotocol/server-filesystem/package.json',
  );
  return join(dirname(manifest), 'dist/index.js');
}
