import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { ServerConfig } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';

interface Wired {
  readonly registry: ExtensionRegistry;
  readonly close: () => Promise<void>;
}

/** patchbay with these servers, as a program wires it by hand. */
export function plug(servers: Readonly<Record<string, ServerConfig>>): Wired {
  const quiet = { onProblem: () => undefined };
  const connections = new ConnectionPool(quiet);
  const registry = new ExtensionRegistry(quiet);
  for (const [id, server] of Object.entries(servers))
    registry.register(new McpServerCapability({ id, server, connections }));
  return {
    registry,
    close: async () => {
      await registry.close();
      await connections.close();
    },
  };
}
