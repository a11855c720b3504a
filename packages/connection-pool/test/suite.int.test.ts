import { ConnectionPool } from '@patchbay/connection-pool';
import { describeConnectionProvider } from '@patchbay/testkit/vitest';

const SERVERS = [
  { transport: 'stdio', era: 'legacy' },
  { transport: 'stdio', era: 'modern' },
  { transport: 'http', era: 'legacy' },
  { transport: 'http', era: 'modern' },
] as const;

const ABORTED = [
  {
    test: 'stops waiting for a connection when that is aborted',
    reason: 'it rejects with the bare reason of the caller',
  },
];
const HTTP_LOSS = [
  'says `outcome-unknown` once when the server dies in a call, runs it once, and goes on',
  'sends a call again that may be repeated',
].map((test) => ({ test, reason: 'a socket that is cut counts as an answer of the server' }));

for (const server of SERVERS) {
  describeConnectionProvider(`ConnectionPool over ${server.transport}, ${server.era},`, {
    create: async () => {
      const provider = new ConnectionPool({ backOff: { firstMs: 1, maxMs: 20 } });
      return { provider, server, [Symbol.asyncDispose]: () => provider.close() };
    },
    skip: [...ABORTED, ...(server.transport === 'http' ? HTTP_LOSS : [])],
  });
}
