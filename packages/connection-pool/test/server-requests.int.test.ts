import { EventEmitter, once } from 'node:events';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import type { ServerConfig, ServerRequestHandlers } from '@patchbay/protocols';
import { scriptedServer, type ScriptedServerOptions } from '@patchbay/testkit';
import { describe, expect, it, vi } from 'vitest';

import { textOf } from './case-server.ts';

const FORM = {
  message: 'How many?',
  requestedSchema: {
    type: 'object',
    properties: {
      count: { type: 'integer', default: 3 },
      colour: { type: 'string', enum: ['red', 'blue'], default: 'blue' },
    },
    required: ['count'],
  },
};
const QUESTION = {
  messages: [{ role: 'user', content: { type: 'text', text: 'Why?' } }],
  maxTokens: 10,
};

/** A server whose tools ask back, and answer with what they were told. */
async function asking(
  kind: Pick<ScriptedServerOptions, 'transport' | 'era'>,
  handlers: ServerRequestHandlers,
  { options = {}, config = {} }: { options?: PoolOptions; config?: Partial<ServerConfig> } = {},
) {
  const ask = (name: string, method: string, params: Readonly<Record<string, unknown>>) => ({
    name,
    onCall: async (
      _: unknown,
      call: { ask: (method: string, params: Readonly<Record<string, unknown>>) => Promise<object> },
    ) => JSON.stringify(await call.ask(method, params)),
  });
  const server = await scriptedServer({
    ...kind,
    tools: [
      ask('form', 'elicitation/create', { mode: 'form', ...FORM }),
      ask('page', 'elicitation/create', {
        mode: 'url',
        message: 'Look there.',
        url: 'https://pay.example/1',
        elicitationId: 'one',
      }),
      ask('model', 'sampling/createMessage', QUESTION),
      ask('folders', 'roots/list', {}),
      {
        name: 'chatty',
        onCall: (_, { send, progress }) => {
          send({
            jsonrpc: '2.0',
            method: 'notifications/message',
            params: { level: 'info', logger: 'till', data: 'counted' },
          });
          progress(1, 2);
          return 'said';
        },
      },
    ],
  });
  const pool = new ConnectionPool({ handlers, ...options });
  const lease = await pool.acquire({ ...server.config, ...config } as ServerConfig);
  const call = async (name: string, given?: ServerRequestHandlers) =>
    textOf(await lease.value.callTool(name, {}, given === undefined ? {} : { handlers: given }));
  return {
    server,
    pool,
    client: lease.value,
    call,
    told: async (name: string, given?: ServerRequestHandlers) =>
      JSON.parse(await call(name, given)) as Readonly<Record<string, unknown>>,
    [Symbol.asyncDispose]: async () => {
      await pool.close();
      await server.close();
    },
  };
}

const named = (name: string): ServerRequestHandlers => ({
  elicitation: async () => ({ action: 'accept', content: { name } }),
  sampling: async () => ({
    role: 'assistant',
    model: name,
    content: { type: 'text', text: 'Because.' },
  }),
  roots: async () => [{ uri: `file:///${name}`, name }],
});

const KINDS = [
  { transport: 'stdio', era: 'legacy' },
  { transport: 'stdio', era: 'modern' },
  { transport: 'http', era: 'legacy' },
  { transport: 'http', era: 'modern' },
] as const;

describe.concurrent.each(KINDS)('what a server asks ($transport, $era)', (kind) => {
  it('in the middle of a call is answered by the pool', async () => {
    await using all = await asking(kind, named('pool'));
    expect(await all.told('model')).toMatchObject({ model: 'pool' });
    expect(await all.told('folders')).toEqual({ roots: [{ uri: 'file:///pool', name: 'pool' }] });
    expect(await all.told('form')).toMatchObject({ action: 'accept' });
  });

  it('gets the defaults of its form filled in, and an address as it is', async () => {
    const asked: unknown[] = [];
    const elicitation: ServerRequestHandlers['elicitation'] = async (params) => {
      asked.push(params);
      return { action: 'accept', content: {} };
    };
    await using all = await asking(kind, { elicitation });
    expect(await all.told('form')).toEqual({
      action: 'accept',
      content: { count: 3, colour: 'blue' },
    });
    await all.told('page');
    expect(asked).toMatchObject([FORM, { mode: 'url', url: 'https://pay.example/1' }]);
  });

  it('is answered by the server of the configuration rather than the pool, and by the call rather than both', async () => {
    await using all = await asking(kind, named('pool'), { config: { handlers: named('server') } });
    expect(await all.told('model')).toMatchObject({ model: 'server' });
    expect(await all.told('model', named('call'))).toMatchObject({ model: 'call' });
    // What a call does not answer, is answered as without it.
    expect(await all.told('model', { roots: async () => [] })).toMatchObject({ model: 'server' });
    expect(all.pool.inspect()).toHaveLength(1);
  });

  it('is not announced without a handler, and then refused', async () => {
    await using all = await asking(kind, {});
    for (const tool of ['model', 'folders', 'form'])
      await expect(all.call(tool, named('call'))).rejects.toMatchObject({ code: 'protocol-error' });
  });

  it('is refused when the handler fails, and the call goes on', async () => {
    const sampling = async () => Promise.reject(new Error('no model today'));
    await using all = await asking(kind, { ...named('pool'), sampling });
    await expect(all.call('model')).rejects.toThrow('no model today');
    expect(await all.told('folders')).toHaveProperty('roots');
  });

  it('while many calls ask at once, is answered by the one that it is about', async () => {
    // Over stdio older servers do not say which: then it is the pool.
    const isKnown = kind.transport === 'http' || kind.era === 'modern';
    await using all = await asking(kind, named('pool'));
    const names = Array.from({ length: 10 }, (_, i) => `call-${i}`);
    const models = await Promise.all(names.map((name) => all.told('model', named(name))));
    expect(models.map(({ model }) => model)).toEqual(isKnown ? names : names.map(() => 'pool'));
    const same = named('same');
    const again = await Promise.all(names.map(() => all.told('model', same)));
    expect(new Set(again.map(({ model }) => model))).toEqual(new Set(['same']));
  });

  it('and what it logs and how far it is goes to the handlers of the pool and of the call', async () => {
    const heard: unknown[] = [];
    const handlers = (who: string): ServerRequestHandlers => ({
      log: ({ data }) => void heard.push([who, 'log', data]),
      progress: ({ progress }, { name }) => void heard.push([who, progress, name]),
    });
    await using all = await asking(kind, handlers('pool'));
    await all.call('chatty');
    const own = vi.fn<(one: unknown) => void>();
    await all.client.callTool('chatty', {}, { handlers: handlers('call'), onProgress: own });
    await vi.waitFor(() => expect(heard).toHaveLength(4));
    expect(heard).toEqual([
      ['pool', 'log', 'counted'],
      ['pool', 1, 'chatty'],
      ['call', 'log', 'counted'],
      ['call', 1, 'chatty'],
    ]);
    expect(own).toHaveBeenCalledWith({ progress: 1, total: 2 });
  });
});

describe.concurrent.each(['stdio', 'http'] as const)('an older server (%s)', (transport) => {
  it('that asks while no call is under way is answered by whoever made the connection', async () => {
    await using all = await asking({ transport, era: 'legacy' }, named('pool'));
    await all.told('folders', named('call'));
    expect(await all.server.ask('roots/list')).toMatchObject({ roots: [{ name: 'pool' }] });
    expect(await all.server.ask('sampling/createMessage', QUESTION)).toMatchObject({
      model: 'pool',
    });
  });

  it('is pinged, and pings', async () => {
    await using all = await asking({ transport, era: 'legacy' }, {});
    expect(await all.client.request('ping')).toEqual({});
    expect(await all.server.ask('ping')).toEqual({});
  });

  it('that wants the user to have been somewhere first is asked again when the user agreed', async () => {
    const elicitations = [
      { mode: 'url', url: 'https://login.example/', elicitationId: 'one', message: 'Log in.' },
    ];
    const refusal = { code: -32_042, message: 'Log in first.', data: { elicitations } };
    const visited: unknown[] = [];
    let executions = 0;
    await using server = await scriptedServer({
      transport,
      tools: [
        {
          name: 'pay',
          onCall: () => {
            executions++;
            if (visited.length > 0) return 'paid';
            throw Object.assign(new Error(refusal.message), refusal);
          },
        },
      ],
    });
    await using pool = new ConnectionPool({
      handlers: {
        elicitation: async ({ url }) => {
          visited.push(url);
          return { action: 'accept' };
        },
      },
    });
    await using lease = await pool.acquire(server.config);
    const decline = { elicitation: async () => ({ action: 'decline' }) };
    await expect(lease.value.callTool('pay', {}, { handlers: decline })).rejects.toMatchObject({
      code: 'protocol-error',
      details: { rpcCode: -32_042 },
    });
    expect(textOf(await lease.value.callTool('pay', {}))).toBe('paid');
    expect(visited).toEqual(['https://login.example/']);
    expect(executions).toBe(3);
  });
});

it('What an older server asks late in a stream, over a socket that another call opened, is for the call of the stream', async () => {
  const heard = new EventEmitter();
  await using server = await scriptedServer({
    transport: 'http',
    era: 'legacy',
    tools: [
      {
        name: 'later',
        onCall: async ({ n }, { ask, progress }) => {
          const arrived = once(heard, String(n));
          progress(1, 2);
          // What it said before has arrived.
          await arrived;
          return JSON.stringify(await ask('sampling/createMessage', QUESTION));
        },
      },
    ],
  });
  await using pool = new ConnectionPool({ handlers: named('pool') });
  await using lease = await pool.acquire(server.config);
  const call = async (n: number) => {
    const onProgress = () => void heard.emit(String(n));
    const given = { handlers: named(`call-${n}`), onProgress };
    const answer = await lease.value.callTool('later', { n }, given);
    return (JSON.parse(textOf(answer)) as { readonly model: string }).model;
  };
  expect(await Promise.all([0, 1].map(call))).toEqual(['call-0', 'call-1']);
  expect(await Promise.all([2, 3].map(call))).toEqual(['call-2', 'call-3']);
});

describe('a newer server', () => {
  it('is not pinged: there is no such request any more', async () => {
    await using all = await asking({ transport: 'http', era: 'modern' }, {});
    await expect(all.client.request('ping')).rejects.toMatchObject({ code: 'protocol-error' });
  });
});

it('Servers whose handlers differ have connections of their own; the same handlers share one', async () => {
  await using server = await scriptedServer({ transport: 'http', tools: [{ name: 'a' }] });
  await using pool = new ConnectionPool();
  const [one, two] = [named('one'), named('two')];
  for (const handlers of [one, two, one, undefined])
    await pool.acquire({ ...server.config, ...(handlers === undefined ? {} : { handlers }) });
  expect(pool.inspect()).toHaveLength(3);
});
