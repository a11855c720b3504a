import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import { McpServerCapability, type McpServerOptions } from '@patchbay/mcp';
import type { ChangeEvent, ExtensionView, Problem, StdioServerConfig } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { vi } from 'vitest';

/** A server behind capability, registry and pool, with what went wrong. */
export function plugged(
  options: Omit<McpServerOptions, 'connections' | 'id'> & { readonly id?: string },
  poolOptions: PoolOptions = {},
) {
  const problems: Problem[] = [];
  const onProblem = (problem: Problem) => void problems.push(problem);
  const pool = new ConnectionPool({
    backOff: { firstMs: 1, maxMs: 20 },
    onProblem,
    ...poolOptions,
  });
  const registry = new ExtensionRegistry({ onProblem });
  const capability = new McpServerCapability({ id: 'all', ...options, connections: pool });
  registry.register(capability);
  return {
    pool,
    registry,
    capability,
    problems,
    view: registry.view(),
    [Symbol.asyncDispose]: async () => {
      await registry.close();
      await pool.close();
    },
  };
}

/** Everything that is told from now on. */
export function hearing(view: ExtensionView) {
  const stop = new AbortController();
  const heard: ChangeEvent[] = [];
  const changes = view.changes({ signal: stop.signal });
  const listening = (async () => {
    for await (const event of changes) heard.push(event);
  })();
  return {
    heard,
    /** Waits for an event of this kind. */
    kind: (kind: string, sourceUri?: string) =>
      vi.waitFor(
        () => {
          const found = heard.find(
            (event) =>
              event.kind === kind && (sourceUri === undefined || event.sourceUri === sourceUri),
          );
          if (found === undefined) throw new Error(`Nothing told ${kind}.`);
          return found;
        },
        { timeout: 15_000 },
      ),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await listening;
    },
  };
}

/** A server from npm, started from its files. */
export function npmServer(
  name: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): StdioServerConfig {
  // Not by `require.resolve`: not every package offers its manifest.
  const file = fileURLToPath(new URL(`../node_modules/${name}/package.json`, import.meta.url));
  const { bin } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly bin: string | Readonly<Record<string, string>>;
  };
  const program = typeof bin === 'string' ? bin : Object.values(bin)[0]!;
  return { command: process.execPath, args: [join(dirname(file), program), ...args], env };
}
