import { ConnectionPool } from '@patchbay/connection-pool';
import { authorizationServer, scriptedServer } from '@patchbay/testkit';
import { expect, it } from 'vitest';

it('An authorization server that never answers is given up after ten seconds, also by the connect', async () => {
  await using authorization = await authorizationServer({
    clients: [{ id: 'robot', secret: 's3cr3t-of-the-robot' }],
    misbehaviour: 'silent',
  });
  await using server = await scriptedServer({
    transport: 'http',
    protection: { by: authorization },
  });
  await using pool = new ConnectionPool();
  const auth = {
    grant: 'client',
    clientId: 'robot',
    clientSecret: 's3cr3t-of-the-robot',
    issuer: authorization.issuer,
  } as const;
  const timeouts = { connectMs: 2_000 };
  await expect(pool.acquire({ ...server.config, auth, timeouts })).rejects.toMatchObject({
    code: 'authorization-failed',
  });
  expect(authorization.requests.map(({ endpoint }) => endpoint)).toEqual(['metadata']);
});
