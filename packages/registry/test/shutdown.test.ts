import { defineTool, type Capability, type RegistrationScope } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { expect, it, onTestFinished, vi } from 'vitest';

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

/** Promise.withResolvers, which Node 20 lacks. */
function deferred<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((ok) => (resolve = ok));
  return { promise, resolve };
}

const forever = new Promise<never>(() => undefined);

it('ends a compile that is under way, and tells the source', async () => {
  const registry = new ExtensionRegistry({ onProblem: () => undefined });
  let aborted = false;
  const asked = deferred<void>();
  registry.register({
    id: 'slow',
    tools: ({ signal }) =>
      new Promise((_, reject) => {
        asked.resolve();
        signal.addEventListener('abort', () => {
          aborted = true;
          reject(signal.reason as Error);
        });
      }),
  });
  const compile = registry.view().compile();
  await asked.promise;
  const closes = registry.close();
  await expect(compile).rejects.toMatchObject({ code: 'closed' });
  await closes;
  expect(aborted).toBe(true);
});

it('ends compiles, turns and calls of a session also where a source of everybody notices nothing', async () => {
  await using registry = new ExtensionRegistry({ onProblem: () => undefined });
  const called = deferred<void>();
  const deaf = defineTool({
    capability: 'pool',
    name: 'deaf',
    call: () => {
      called.resolve();
      return forever;
    },
  });
  const pool = registry.register({ id: 'pool', tools: async () => [deaf] });
  const { callTool } = await registry.view({ session: 's' }).compile();
  registry.register({ id: 'hangs', tools: () => forever, prepareTurn: () => forever });
  const turn = registry.view({ session: 's' }).beginTurn();
  const under = [
    callTool('pool__deaf', {}),
    registry.view({ session: 's' }).compile(),
    turn.prepare(),
  ];
  await called.promise;
  const ends = Promise.all(
    under.map((run) => expect(run).rejects.toMatchObject({ code: 'closed' })),
  );
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  await registry.close({ session: 's' });
  await vi.runOnlyPendingTimersAsync(); // a tool that is told to stop has a moment to say what became of it
  await ends;
  expect(registry.activity({ session: 's' }).running).toBe(0);
  expect(registry.inspect().map(({ id }) => id)).toEqual(['hangs', 'pool']);
  await pool.close();
});

it('removes only that one of a capability which hangs in a compile: the compile goes on without it', async () => {
  await using registry = new ExtensionRegistry({ onProblem: () => undefined });
  registry.register(closing('fine', []));
  const handle = registry.register({ id: 'hangs', tools: () => forever });
  const compile = registry.view().compile();
  await handle.close();
  expect((await compile).tools.map(({ definition }) => definition.name)).toEqual(['fine__x']);
});

it('lets a tool that is told to stop say what became of it', async () => {
  await using registry = new ExtensionRegistry();
  const called = deferred<void>();
  const handle = registry.register({
    id: 'pay',
    tools: async () => [
      defineTool({
        capability: 'pay',
        name: 'now',
        call: (_args, { signal }) => {
          called.resolve();
          return new Promise((resolve) =>
            signal?.addEventListener('abort', () => setImmediate(resolve, 'paid all the same')),
          );
        },
      }),
    ],
  });
  const { callTool } = await registry.view().compile();
  const call = callTool('pay__now', {});
  await called.promise;
  await handle.close();
  expect((await call).content).toEqual([{ type: 'text', text: 'paid all the same' }]);
});

it('takes no longer in all than four capabilities may, however many hang', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const registry = new ExtensionRegistry({ closeTimeoutMs: 5_000 });
  const order: string[] = [];
  for (let i = 0; i < 20; i++)
    registry.register(
      closing(`hangs${i}`, order, () => forever),
      { session: `s${i % 2}` },
    );
  registry.register(closing('fine', order));
  const start = Date.now();
  const failed = registry.close().catch((error: unknown) => error);
  await vi.runAllTimersAsync();
  expect(await failed).toMatchObject({ cause: { errors: { length: 20 } } });
  expect(Date.now() - start).toBe(20_000);
  expect(order).toHaveLength(21);
  expect(order.at(-1)).toBe('fine');
});

it('waits for what is closing already, and reports it to everybody who closes it', async () => {
  const registry = new ExtensionRegistry();
  const order: string[] = [];
  const end = deferred<void>();
  const handle = registry.register(
    closing('mine', order, async () => {
      await end.promise;
      order.push('mine ended');
      throw new Error('disk full');
    }),
    { session: 's' },
  );
  registry.register(closing('pool', order));
  const closes = [
    registry.close({ session: 's' }),
    registry.close(),
    handle.close(),
    registry.close(),
  ].map((close) =>
    close.then(
      () => order.push('closed'),
      ({ message }: Error) => message,
    ),
  );
  end.resolve();
  expect(await Promise.all(closes)).toEqual(Array(4).fill('"mine" failed to close: disk full'));
  expect(order).toEqual(['mine', 'pool', 'mine ended']);
});

it('closes the session also when something of an open turn fails to close', async () => {
  const problems: string[] = [];
  const registry = new ExtensionRegistry({
    onProblem: ({ message }) => void problems.push(message),
  });
  const order: string[] = [];
  const failing = (id: string) => closing(id, order, () => Promise.reject(new Error('stuck')));
  const view = registry.view({ session: 's' });
  view.beginTurn({ turnId: '1' });
  registry.register(failing('turn'), { session: 's', turn: '1' });
  registry.register(closing('session', order), { session: 's' });
  await expect(registry.close({ session: 's' })).rejects.toThrow('"turn" failed to close: stuck');
  expect(order).toEqual(['turn', 'session']);
  expect(problems).toEqual([]);
});

it('reports what fails to close when a turn ends by its signal', async () => {
  const told = deferred<string>();
  await using registry = new ExtensionRegistry({
    onProblem: ({ message }) => told.resolve(message),
  });
  const stop = new AbortController();
  registry.view({ session: 's' }).beginTurn({ turnId: '1', signal: stop.signal });
  registry.register(
    closing('turn', [], () => Promise.reject(new Error('stuck'))),
    {
      session: 's',
      turn: '1',
    },
  );
  stop.abort();
  expect(await told.promise).toBe('"turn" failed to close: stuck');
});
