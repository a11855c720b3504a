import { EventEmitter, once } from 'node:events';

import {
  Client,
  StreamableHTTPClientTransport,
  type ClientCapabilities,
  type Progress,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';

import { scriptedServer, type ScriptedServer } from '../src/index.ts';

/** The official client, connected. */
async function connected({ config }: ScriptedServer, capabilities: ClientCapabilities = {}) {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' }, capabilities },
  );
  const transport =
    'url' in config
      ? new StreamableHTTPClientTransport(new URL(config.url))
      : new StdioClientTransport({ command: config.command, args: [...(config.args ?? [])] });
  await client.connect(transport);
  return { client, [Symbol.asyncDispose]: () => client.close() };
}

const KINDS = [
  { transport: 'stdio', era: 'legacy' },
  { transport: 'stdio', era: 'modern' },
  { transport: 'http', era: 'legacy' },
  { transport: 'http', era: 'modern' },
] as const;

const text = (said: string) => ({ content: [{ type: 'text', text: said }] });

describe.each(KINDS)('a scripted $era server over $transport', (kind) => {
  it('lists and answers what it was told', async () => {
    await using server = await scriptedServer({
      ...kind,
      tools: [{ name: 'echo' }, { name: 'twice', onCall: ({ n }) => String(Number(n) * 2) }],
      resources: [{ uri: 'memo://one', text: 'first' }],
      prompts: [{ name: 'ask', text: 'Ask:' }],
      instructions: 'Be kind.',
    });
    await using connection = await connected(server);
    const { client } = connection;
    expect(client.getInstructions()).toBe('Be kind.');
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo', 'twice']);
    expect(await client.callTool({ name: 'echo', arguments: { a: 1 } })).toMatchObject(
      text('{"a":1}'),
    );
    expect(await client.callTool({ name: 'twice', arguments: { n: 2 } })).toMatchObject(text('4'));
    expect((await client.listResources()).resources).toEqual([
      { uri: 'memo://one', name: 'memo://one' },
    ]);
    expect((await client.readResource({ uri: 'memo://one' })).contents).toEqual([
      { uri: 'memo://one', text: 'first' },
    ]);
    expect((await client.listPrompts()).prompts).toMatchObject([{ name: 'ask' }]);
    const { messages } = await client.getPrompt({ name: 'ask', arguments: { x: '1' } });
    expect(messages[0]?.content).toEqual({ type: 'text', text: 'Ask: {"x":"1"}' });
    expect(server.executions('twice')).toBe(1);
    expect(server.connections).toBe(1);
    expect(server.requests).toContain('prompts/get');
  });

  it('counts what it did before it died, and can be reached again', async () => {
    await using server = await scriptedServer({
      ...kind,
      tools: [
        { name: 'pay', onCall: 'die-after-execution' },
        { name: 'not', onCall: 'die-before-execution' },
        { name: 'once', onCall: 'die-once' },
      ],
    });
    for (const name of ['pay', 'not', 'once']) {
      await using connection = await connected(server);
      await expect(connection.client.callTool({ name })).rejects.toThrow();
    }
    expect(['pay', 'not', 'once'].map((name) => server.executions(name))).toEqual([1, 0, 1]);
    await using connection = await connected(server);
    expect(await connection.client.callTool({ name: 'once' })).toMatchObject(text('execution 2'));
    expect(server.connections).toBe(4);
  });

  it('misbehaves by name', async () => {
    const names = ['slow', 'rpc-error', 'tool-error', 'answer-twice', 'wrong-id'] as const;
    await using server = await scriptedServer({
      ...kind,
      tools: [...names, 'never' as const].map((name) => ({ name, onCall: name })),
    });
    await using connection = await connected(server);
    const { client } = connection;
    const steps: number[] = [];
    const onprogress = ({ progress }: Progress) => void steps.push(progress);
    expect(await client.callTool({ name: 'slow' }, { onprogress })).toMatchObject(text('slow'));
    expect(steps).toEqual([1, 2, 3, 4]);
    await expect(client.callTool({ name: 'rpc-error' })).rejects.toMatchObject({ code: -32602 });
    expect(await client.callTool({ name: 'tool-error' })).toMatchObject({ isError: true });
    expect(await client.callTool({ name: 'answer-twice' })).toMatchObject(text('first'));
    expect(await client.callTool({ name: 'wrong-id' })).toMatchObject(text('right'));
    const controller = new AbortController();
    const never = client.callTool({ name: 'never' }, { signal: controller.signal });
    never.catch(() => undefined);
    await expect.poll(() => server.executions('never')).toBe(1);
    controller.abort();
    await expect(never).rejects.toThrow();
    await expect.poll(() => server.cancellations).toBe(1);
  });

  it('answers a method as the test wants', async () => {
    let broken = false;
    await using server = await scriptedServer({
      ...kind,
      tools: [{ name: 'a' }],
      methods: {
        'tools/list': async (_, usual) => {
          if (broken) throw Object.assign(new Error('no list today'), { code: -32050 });
          return { ...(await usual()), _meta: { mine: true } };
        },
        'prompts/list': () => undefined,
        'completion/complete': () => ({ completion: { values: ['Ann'] } }),
      },
    });
    await using connection = await connected(server);
    const { client } = connection;
    expect(await client.listTools()).toMatchObject({
      tools: [{ name: 'a' }],
      _meta: { mine: true },
    });
    broken = true;
    await expect(client.listTools(undefined, { cacheMode: 'bypass' })).rejects.toMatchObject({
      code: -32050,
      message: expect.stringContaining('no list today'),
    });
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const waiting = client.request({ method: 'prompts/list' }, { signal }).then(
      () => 'answered',
      () => 'given up',
    );
    const ref = { type: 'ref/prompt', name: 'p' } as const;
    const { completion } = await client.complete({ ref, argument: { name: 'x', value: '' } });
    expect(completion.values).toEqual(['Ann']);
    await expect.poll(() => server.requests).toContain('prompts/list');
    expect(await Promise.race([waiting, Promise.resolve('open')])).toBe('open');
    giveUp.abort();
    expect(await waiting).toBe('given up');
  });

  it('asks its client in the middle of a call', async () => {
    const form = { message: 'Who are you?', requestedSchema: { type: 'object', properties: {} } };
    await using server = await scriptedServer({
      ...kind,
      tools: [
        {
          name: 'greet',
          onCall: async (_, { ask, execution }) => {
            const asked = await ask('elicitation/create', form);
            const roots = await ask('roots/list', {});
            return `${execution} ${JSON.stringify([asked, roots])}`;
          },
        },
      ],
    });
    await using connection = await connected(server, { elicitation: { form: {} }, roots: {} });
    const { client } = connection;
    client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///a' }] }));
    client.setRequestHandler('elicitation/create', ({ params }) => {
      if (params.message !== form.message) throw new Error(params.message);
      return { action: 'accept', content: { name: 'Ann' } };
    });
    const said = [
      { action: 'accept', content: { name: 'Ann' } },
      { roots: [{ uri: 'file:///a' }] },
    ];
    expect(await client.callTool({ name: 'greet' })).toMatchObject(
      text(`1 ${JSON.stringify(said)}`),
    );
    expect(server.executions('greet')).toBe(1);
    if (kind.era === 'modern') {
      await expect(server.ask('ping')).rejects.toThrow('modern');
    } else {
      expect(await server.ask('ping')).toEqual({});
      await expect(server.ask('no/such')).rejects.toThrow('-32601');
    }
  });

  it('tells a function of a tool when its client is gone', async () => {
    const gone = new EventEmitter();
    await using server = await scriptedServer({
      ...kind,
      tools: [
        {
          name: 'waits',
          onCall: async (_, { signal, die }) => {
            signal.addEventListener('abort', () => gone.emit('now'), { once: true });
            setImmediate(die);
            await once(gone, 'now');
            return 'too late';
          },
        },
      ],
    });
    await using connection = await connected(server);
    const told = once(gone, 'now');
    connection.client.callTool({ name: 'waits' }).catch(() => undefined);
    await told;
  });
});

it.each(KINDS)('says, $era over $transport, when its tools change', async (kind) => {
  await using server = await scriptedServer({ ...kind, tools: [{ name: 'a' }] });
  await using connection = await connected(server);
  const { client } = connection;
  const heard = new Promise<void>((resolve) => {
    client.setNotificationHandler('notifications/tools/list_changed', () => resolve());
  });
  const listening =
    kind.era === 'modern' ? await client.listen({ toolsListChanged: true }) : undefined;
  server.setTools([{ name: 'b' }]);
  await heard;
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['b']);
  await listening?.close();
  expect(server.cancellations).toBe(0);
});

it('ends its processes with itself', async () => {
  const server = await scriptedServer({ tools: [{ name: 'a' }] });
  await using connection = await connected(server);
  const closed = new Promise<void>((resolve) => (connection.client.onclose = resolve));
  await server.close();
  await closed;
});
