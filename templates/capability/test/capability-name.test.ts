import { CapabilityName } from '@patchbay/capability-name';
import { ExtensionRegistry } from '@patchbay/registry';
import { expect, it } from 'vitest';

import { backend } from './backend.ts';

function setUp() {
  const service = backend();
  const registry = new ExtensionRegistry();
  registry.register(new CapabilityName({ id: 'mine', backend: service }), { session: 'ann' });
  return { service, registry };
}

it('offers each action as a tool, where it is registered and nowhere else', async () => {
  await using registry = setUp().registry;
  const seen = async (session: string) =>
    (await registry.view({ session }).compile()).tools.map(({ definition }) => definition.name);
  expect(await seen('ann')).toEqual(['mine__echo', 'mine__fail', 'mine__hang']);
  expect(await seen('bob')).toEqual([]);
});

it('runs an action, and says why one failed', async () => {
  await using registry = setUp().registry;
  const { callTool } = await registry.view({ session: 'ann' }).compile();
  expect(await callTool('mine__echo', { input: 'hi' })).toMatchObject({
    content: [{ type: 'text', text: 'hi' }],
  });
  expect(await callTool('mine__fail', {})).toMatchObject({
    isError: true,
    content: [{ type: 'text', text: 'no paper' }],
  });
});

it('runs an action that nobody listed before, and refuses one that is not there', async () => {
  const capability = new CapabilityName({ id: 'mine', backend: backend() });
  expect(await capability.callTool('echo', { input: 'hi' })).toMatchObject({
    content: [{ type: 'text', text: 'hi' }],
  });
  await expect(capability.callTool('gone', {})).rejects.toMatchObject({ code: 'tool-unavailable' });
});

it('ends a call that is aborted', async () => {
  await using registry = setUp().registry;
  const { callTool } = await registry.view({ session: 'ann' }).compile();
  const stop = new AbortController();
  const call = callTool('mine__hang', {}, { signal: stop.signal });
  stop.abort();
  await expect(call).rejects.toMatchObject({ code: 'aborted' });
});

it('offers other tools at the next look when the backend changed', async () => {
  const { service, registry } = setUp();
  await using _ = registry;
  const view = registry.view({ session: 'ann' });
  await view.compile();
  const stop = new AbortController();
  const changes = view.changes({ signal: stop.signal })[Symbol.asyncIterator]();
  const change = changes.next();
  service.set([{ name: 'other', description: 'Another one.' }]);
  expect((await change).value).toMatchObject({ capability: 'mine', kind: 'tools_changed' });
  stop.abort();
  expect((await view.compile()).tools.map(({ definition }) => definition.name)).toEqual([
    'mine__other',
  ]);
});
