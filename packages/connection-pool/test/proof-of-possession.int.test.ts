import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

import { ConnectionPool } from '@patchbay/connection-pool';
import type { HttpServerConfig } from '@patchbay/protocols';
import { scriptedServer } from '@patchbay/testkit';
import { expect, it } from 'vitest';

import { textOf } from './case-server.ts';

const TOKEN = 'token-of-a-key';

/** What a proof says. (RFC 9449, section 4.2) */
const proofOf = ({ headers }: IncomingMessage): Readonly<Record<string, unknown>> => {
  const [, payload = ''] = String(headers['dpop']).split('.');
  return JSON.parse(Buffer.from(payload, 'base64url').toString() || '{}') as Record<
    string,
    unknown
  >;
};

/**
 * Stands before a server: it gives tokens that are bound to a key, and lets in whoever proves to have it with the nonce that
 * is in force. (RFC 9449, section 9)
 */
async function bound(era: 'legacy' | 'modern') {
  const server = await scriptedServer({
    transport: 'http',
    era,
    tools: [{ name: 'whoami', onCall: () => 'somebody' }],
  });
  const target = (server.config as HttpServerConfig).url;
  let nonce = 'nonce-0';
  const refused: string[] = [];
  const proofs: unknown[] = [];
  const json = (response: ServerResponse, body: object) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body));

  const front = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const { pathname } = new URL(request.url ?? '', origin);
    const body = await text(request);
    if (pathname.startsWith('/.well-known/oauth-protected-resource'))
      return json(response, { resource: `${origin}/mcp`, authorization_servers: [origin] });
    if (pathname.startsWith('/.well-known/oauth-authorization-server'))
      return json(response, {
        issuer: origin,
        token_endpoint: `${origin}/token`,
        authorization_endpoint: `${origin}/authorize`,
        response_types_supported: ['code'],
        grant_types_supported: ['client_credentials'],
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
        dpop_signing_alg_values_supported: ['ES256'],
      });
    if (pathname === '/token')
      return json(response, { access_token: TOKEN, token_type: 'DPoP', expires_in: 3600 });
    const proof = proofOf(request);
    const isBound = request.headers.authorization === `DPoP ${TOKEN}`;
    if (!isBound || proof['nonce'] !== nonce) {
      const why = isBound ? 'use_dpop_nonce' : 'invalid_token';
      refused.push(why);
      response.writeHead(401, {
        'dpop-nonce': nonce,
        'www-authenticate': `DPoP error="${why}", resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
      });
      return response.end('who are you?');
    }
    proofs.push(proof['jti']);
    const headers = Object.entries(request.headers).filter(
      ([name]) => name.startsWith('mcp-') || name === 'accept' || name === 'content-type',
    ) as [string, string][];
    const { method = 'GET' } = request;
    if (method === 'GET') return response.writeHead(405).end();
    const answered = await fetch(target, { method, headers, ...(body === '' ? {} : { body }) });
    for (const [name, value] of answered.headers)
      if (name === 'content-type' || name.startsWith('mcp-')) response.setHeader(name, value);
    return response.writeHead(answered.status).end(await answered.text());
  };
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const origin = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  return {
    server,
    refused,
    proofs,
    config: {
      url: `${origin}/mcp`,
      auth: { grant: 'client', clientId: 'robot', clientSecret: 's3cr3t', issuer: origin },
    } satisfies HttpServerConfig,
    renewNonce: (next: string) => void (nonce = next),
    [Symbol.asyncDispose]: async () => {
      front.closeAllConnections();
      front.close();
      await once(front, 'close');
      await server.close();
    },
  };
}

it.concurrent.each(
  (['own', 'sdk'] as const).flatMap((path) =>
    (['legacy', 'modern'] as const).map((era) => [path, era] as const),
  ),
)(
  'a call that is refused for its nonce runs once, with the new one (%s, %s)',
  async (path, era) => {
    await using all = await bound(era);
    await using pool = new ConnectionPool({ callPath: path });
    await using lease = await pool.acquire(all.config);
    const call = async () => textOf(await lease.value.callTool('whoami', {}));
    expect(await call()).toBe('somebody');
    expect(all.refused).toEqual(['invalid_token', 'use_dpop_nonce']);
    all.renewNonce('nonce-1');
    expect(await call()).toBe('somebody');
    expect(await call()).toBe('somebody');
    expect(all.refused).toEqual(['invalid_token', 'use_dpop_nonce', 'use_dpop_nonce']);
    expect(all.server.executions('whoami')).toBe(3);
    // No proof is used twice.
    expect(new Set(all.proofs).size).toBe(all.proofs.length);
  },
);
