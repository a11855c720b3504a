import { ConnectionPool } from '@patchbay/connection-pool';
import { describeConnectionProvider } from '@patchbay/testkit/vitest';

const SERVERS = [
  { transport: 'stdio', era: 'legacy' },
  { transport: 'stdio', era: 'modern' },
  { transport: 'http', era: 'legacy' },
  { transport: 'http', era: 'modern' },
] as const;

for (const server of SERVERS) {
  describeConnectionProvider(`ConnectionPool over ${server.transport}, ${server.era},`, {
    create: async () => {
      const provider = new ConnectionPool({ backOff: { firstMs: 1, maxMs: 20 } });
      return { provider, server, [Symbol.asyncDispose]: () => provider.close() };
    },
  });
}
