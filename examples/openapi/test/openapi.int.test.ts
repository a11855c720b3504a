import { ExtensionRegistry } from '@patchbay/registry';
import { expect, it } from 'vitest';

import { OpenApi } from '../src/index.ts';
import { petDocument, petService } from './service.ts';

async function setUp(document: () => Promise<object> = async () => petDocument) {
  const service = await petService();
  const registry = new ExtensionRegistry();
  const pets = new OpenApi({
    id: 'pets',
    document,
    baseUrl: service.baseUrl,
    headers: (identity) => (identity === undefined ? {} : { authorization: identity.id }),
  });
  registry.register(pets);
  const view = registry.view({ session: 'ann' }, { identity: { id: 'ann' } });
  return {
    pets,
    view,
    requests: service.requests,
    async [Symbol.asyncDispose]() {
      await registry.close();
      await service[Symbol.asyncDispose]();
    },
  };
}

it('offers each operation as a tool', async () => {
  await using test = await setUp();
  const { tools, problems } = await test.view.compile();
  expect(problems).toEqual([]);
  expect(tools.map(({ definition }) => definition.name)).toEqual([
    'pets__addPet',
    'pets__deletePet',
    'pets__getPet',
    'pets__listPets',
    'pets__slow',
  ]);
  expect(tools[0]?.definition.inputSchema).toMatchObject({
    properties: { body: { required: ['name'] } },
    required: ['body'],
  });
});

it('asks the service, with the credentials of whoever calls', async () => {
  await using test = await setUp();
  const { callTool } = await test.view.compile();
  await callTool('pets__getPet', { id: 'a/b?c' });
  await callTool('pets__listPets', { limit: 3 });
  const { structuredContent } = await callTool('pets__addPet', { body: { name: 'Tom' } });
  expect(structuredContent).toEqual({ url: '/pets' });
  expect(test.requests).toEqual([
    { method: 'GET', url: '/pets/a%2Fb%3Fc', user: 'ann', body: '' },
    { method: 'GET', url: '/pets?limit=3', user: 'ann', body: '' },
    { method: 'POST', url: '/pets', user: 'ann', body: '{"name":"Tom"}' },
  ]);
});

it('gives what the service calls an error as a result', async () => {
  await using test = await setUp();
  const { callTool } = await test.view.compile();
  expect(await callTool('pets__getPet', { id: 'none' })).toMatchObject({
    isError: true,
    content: [{ type: 'text', text: expect.stringContaining('404 Not Found') }],
  });
});

it('says what is known when the connection is cut', async () => {
  await using test = await setUp();
  const { callTool } = await test.view.compile();
  const get = callTool('pets__getPet', { id: 'cut' });
  await expect(get).rejects.toMatchObject({ code: 'unavailable' });
  const remove = callTool('pets__deletePet', { id: 'cut' });
  await expect(remove).rejects.toMatchObject({ code: 'outcome-unknown' });
});

it('refuses a value that would lead to another path', async () => {
  await using test = await setUp();
  const { callTool } = await test.view.compile();
  const call = callTool('pets__deletePet', { id: '..' });
  await expect(call).rejects.toMatchObject({ code: 'invalid-arguments' });
  expect(test.requests).toEqual([]);
});

it('ends a call that is aborted or takes too long', async () => {
  await using test = await setUp();
  const { callTool } = await test.view.compile();
  const stop = new AbortController();
  const call = callTool('pets__slow', {}, { signal: stop.signal });
  stop.abort();
  await expect(call).rejects.toMatchObject({ code: 'aborted' });
  const late = callTool('pets__slow', {}, { timeoutMs: 20 });
  await expect(late).rejects.toMatchObject({ code: 'timeout' });
});

it('keeps the rest standing when the document cannot be had, and tries again', async () => {
  let document: () => Promise<object> = async () => Promise.reject(new Error('no network'));
  await using test = await setUp(() => document());
  const { tools, problems } = await test.view.compile();
  expect(tools).toEqual([]);
  expect(problems).toMatchObject([
    { source: 'pets', message: expect.stringMatching('no network') },
  ]);
  document = async () => petDocument;
  test.pets.refresh();
  expect((await test.view.compile()).tools).toHaveLength(5);
});
