import { defineTool, type Capability, type RegistrationScope } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { expect, it } from 'vitest';

function closing(
  id: string,
  order: string[],
  end: () => Promise<void> = async () => undefined,
): Capability {
  return {
    id,
    tools: async () => [defineTool({ capability: id, name: 'x', call: () => 'x' })],
    [Symbol.asyncDispose]: async () => {
      order.push(id);
      await end();
    },
  };
}

it('closes turn, agent, session, pool, each in reverse order of first use', async () => {
  const registry = new ExtensionRegistry();
  const order: string[] = [];
  const at = (id: string, scope?: RegistrationScope) =>
    registry.register(closing(id, order), scope);
  at('pool1');
  at('pool2');
  at('session', { session: 's' });
  at('sub', { session: 's', agent: 'a/b' });
  at('agent', { session: 's', agent: 'a' });
  at('turn', { session: 's', turn: '1' });
  await registry.view({}, { tools: { include: ['pool2__*'] } }).compile();
  await registry.close();
  expect(order).toEqual(['turn', 'sub', 'agent', 'session', 'pool2', 'pool1']);
  await registry.close();
  expect(order).toHaveLength(6);
  expect(() => registry.register({ id: 'x' })).toThrow(expect.objectContaining({ code: 'closed' }));
  expect(() => registry.view()).toThrow(expect.objectContaining({ code: 'closed' }));
});

it('closes only what belongs to a session, and its views', async () => {
  await using registry = new ExtensionRegistry();
  const order: string[] = [];
  registry.register(closing('pool', order));
  registry.register(closing('mine', order), { session: 's' });
  registry.register(closing('theirs', order), { session: 't' });
  const view = registry.view({ session: 's' });
  registry.state({ session: 's' }).set('k', 1);
  await registry.close({ session: 's' });
  expect(order).toEqual(['mine']);
  expect(registry.state({ session: 's' }).get('k')).toBeUndefined();
  await expect(view.compile()).rejects.toMatchObject({ code: 'closed' });
});

it('leaves behind what does not close in time, closes the rest, and loses no error', async () => {
  const registry = new ExtensionRegistry({ closeTimeoutMs: 5 });
  const order: string[] = [];
  registry.register(closing('hangs', order, () => new Promise(() => undefined)));
  registry.register(closing('throws', order, () => Promise.reject(new Error('disk full'))));
  registry.register(closing('fine', order));
  await expect(registry.close()).rejects.toMatchObject({
    message: expect.stringMatching(/"throws" failed to close: disk full.*"hangs" did not close/),
    cause: { errors: [{ code: 'source-failed' }, { code: 'timeout' }] },
  });
  expect(order).toEqual(['fine', 'throws', 'hangs']);
});

it('disposes a capability that is registered twice with its last registration', async () => {
  await using registry = new ExtensionRegistry();
  const order: string[] = [];
  const capability = closing('x', order);
  const [one, two] = [
    registry.register(capability, { session: 's' }),
    registry.register(capability, { session: 't' }),
  ];
  await one.close();
  await one.close();
  expect(order).toEqual([]);
  await two.close();
  expect(order).toEqual(['x']);
});

it('ends a compile that is under way', async () => {
  const registry = new ExtensionRegistry({ onProblem: () => undefined });
  let aborted = false;
  registry.register({
    id: 'slow',
    tools: ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          aborted = true;
          reject(signal.reason as Error);
        });
      }),
  });
  const compile = registry.view().compile();
  await registry.close();
  expect((await compile).tools).toEqual([]);
  expect(aborted).toBe(true);
});
