import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { ExtensionView, ServerConfig } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';

import { headersOf, type Calls, type Shared } from './side.ts';

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

/** patchbay with one server for many users: a view each, with their identity. */
export function plugShared(
  url: string,
  run: (view: ExtensionView, calls: Calls) => Promise<unknown>,
): Shared {
  const headers = (user?: { readonly id: string }) => headersOf(user?.id ?? 'nobody');
  const { registry, close } = plug({ shop: { url, headers } });
  return {
    callAs: (user, tool) =>
      run(registry.view({ session: user }, { identity: { id: user } }), [
        { name: `shop__${tool}` },
      ]),
    close,
  };
}
