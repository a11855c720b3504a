import { createServer, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

/** What a service of pets says about itself. */
export const petDocument = {
  openapi: '3.1.0',
  info: { title: 'Pets', version: '1' },
  servers: [{ url: 'https://elsewhere.example' }],
  paths: {
    '/pets/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      get: { operationId: 'getPet', summary: 'One pet.' },
      delete: { operationId: 'deletePet', summary: 'Gives a pet away.' },
    },
    '/pets': {
      get: {
        operationId: 'listPets',
        parameters: [{ name: 'limit', in: 'query', schema: { type: 'integer' } }],
      },
      post: {
        operationId: 'addPet',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
        },
      },
    },
    '/slow': { get: { operationId: 'slow', summary: 'Never answers.' } },
  },
  components: {
    schemas: {
      Pet: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    },
  },
};

/** The service itself, on this machine. */
export async function petService() {
  const requests: { method?: string; url?: string; user?: string; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    requests.push({
      ...(method === undefined ? {} : { method }),
      ...(url === undefined ? {} : { url }),
      ...(headers.authorization === undefined ? {} : { user: headers.authorization }),
      body: await textOf(request),
    });
    if (url === '/slow') return;
    if (url === '/pets/cut') {
      request.socket.destroy();
      return;
    }
    response.statusCode = url === '/pets/none' ? 404 : 200;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(url === '/pets/none' ? { error: 'no such pet' } : { url }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    requests,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}
