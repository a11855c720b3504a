import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type {
  HttpServerConfig,
  Identity,
  Problem,
  ServerConfig,
  ToolResult,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer, type ScriptedCall } from '@patchbay/testkit';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

import { aiSdk, type AiSdkOptions } from '../src/index.ts';
import {
  call,
  MAJORS,
  outputs,
  scripted,
  text,
  toolNames,
  type Major,
  type Reply,
} from './majors.ts';

/** A registry with these servers, and the pool that they share. */
function board(servers: Readonly<Record<string, ServerConfig>>, idleMs = 60_000) {
  const connections = new ConnectionPool({ idleMs });
  const registry = new ExtensionRegistry({ onProblem: () => undefined });
  onTestFinished(async () => {
    await registry.close();
    await connections.close();
  });
  const plug = (id: string, server: ServerConfig, more: object = {}) =>
    registry.register(new McpServerCapability({ id, server, connections, ...more }));
  for (const [id, server] of Object.entries(servers)) plug(id, server);
  return { registry, connections, plug };
}

/** An agent on a view, run once. */
async function run(
  major: Major,
  view: ReturnType<ExtensionRegistry['view']>,
  reply: Reply | Parameters<typeof scripted>[1],
  options: AiSdkOptions = {},
) {
  const { model, seen } = scripted(major, reply);
  const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(view, options) });
  const { text: said, steps } = await agent.generate({ prompt: 'go' });
  expect(said).toBe('done');
  return { seen, steps, read: (name: string, step = 1) => outputs(seen[step])[name] };
}

const http = (options: Parameters<typeof scriptedServer>[0]) =>
  scriptedServer({ transport: 'http', ...options });

/** Stands before a server over HTTP, and answers itself where it says so. */
async function before(
  { config }: { readonly config: object },
  answers: (body: string, response: ServerResponse, headers: IncomingHttpHeaders) => boolean,
): Promise<HttpServerConfig> {
  const target = (config as HttpServerConfig).url;
  const front = createServer(async (request, response) => {
    const body = await textOf(request);
    const { method, headers } = request;
    if (answers(body, response, headers)) return;
    const passed = httpRequest(target, { method, headers }, (reply) => {
      response.writeHead(reply.statusCode ?? 500, reply.headers);
      response.flushHeaders();
      pipeline(reply, response, () => undefined);
    });
    response.on('close', () => passed.destroy());
    passed.on('error', () => response.destroy());
    passed.end(body);
  });
  await new Promise<void>((done) => front.listen(0, '127.0.0.1', done));
  onTestFinished(async () => {
    front.closeAllConnections();
    await new Promise((done) => front.close(done));
  });
  const { port } = front.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}${new URL(target).pathname}` };
}

const isCall = (body: string) => body.includes('"tools/call"');

describe.each(MAJORS)('what is open at vercel/ai, on ai $major', (major) => {
  it('vercel-ai-5365: a stream that is read when its function is over has its tools; one that nobody reads holds nothing', async () => {
    await using server = await http({ tools: [{ name: 'look', onCall: () => 'looked' }] });
    const { registry, connections } = board({ s: server.config }, 50);
    const stream = (reply: Parameters<typeof scripted>[1]) => {
      const { model } = scripted(major, reply);
      const settings = { model, prompt: 'go', stopWhen: major.ai.stepCountIs(3) };
      return major.ai.streamText({
        ...settings,
        ...aiSdk(registry.view()),
        onError: () => undefined,
      });
    };
    expect(await stream([[call('1', 's__look')], [text('done')]]).text).toBe('done');
    stream([[call('1', 's__look')], [text('done')]]);
    // A provider that fails.
    await stream([]).consumeStream();
    // It is closed once nothing holds it, and made again where it is needed.
    await vi.waitFor(() => expect(connections.inspect()).toEqual([]));
    expect(await stream([[call('1', 's__look')], [text('again')]]).text).toBe('again');
  });

  it('vercel-ai-8189, -7172, -9743: a tool that a server adds during a run is called in its next step', async () => {
    const adds = () => (server.setTools([{ name: 'late' }, { name: 'open' }]), 'opened');
    await using server = await http({ tools: [{ name: 'open', onCall: adds }] });
    const { registry } = board({ s: server.config });
    const view = registry.view();
    const changes = view.changes()[Symbol.asyncIterator]();
    const change = changes.next();
    const { seen, read } = await run(major, view, async (given, step) => {
      if (step === 0) return [call('open', 's__open')];
      if ('s__late' in outputs(given)) return [text('done')];
      await change;
      // Until the list was read again.
      return [call(`${step}`, toolNames(given).includes('s__late') ? 's__late' : 's__open')];
    });
    await changes.return?.();
    expect(toolNames(seen.at(-1))).toEqual(['s__late', 's__open']);
    expect(read('s__late', seen.length - 1)).toEqual({ type: 'text', value: '{}' });
  });

  it('vercel-ai-14693: what a server logs reaches the log, and nothing that it tells is an error', async () => {
    await using server = await scriptedServer({
      tools: [
        {
          name: 'work',
          onCall: (_, { send }) => {
            const params = { level: 'info', data: 'half way' };
            send({ jsonrpc: '2.0', method: 'notifications/message', params });
            send({ jsonrpc: '2.0', method: 'notifications/of-nobody' });
            return 'worked';
          },
        },
      ],
    });
    const logged: unknown[] = [];
    const problems: Problem[] = [];
    const handlers = { log: (entry: object) => void logged.push(entry) };
    const { registry } = board({ s: { ...server.config, handlers } });
    const { read } = await run(major, registry.view(), [[call('1', 's__work')], [text('done')]], {
      onProblem: (problem) => void problems.push(problem),
    });
    expect(read('s__work')).toEqual({ type: 'text', value: 'worked' });
    expect(logged).toEqual([expect.objectContaining({ level: 'info', data: 'half way' })]);
    expect(problems).toEqual([]);
    // vercel-ai-15701
    expect(await server.ask('ping')).toEqual({});
  });

  it('vercel-ai-13448, -8653: a tool that is not active does not reach its server, whoever calls it', async () => {
    await using server = await http({ tools: [{ name: 'look' }, { name: 'drop' }] });
    const { registry } = board({ s: server.config });
    const { read } = await run(
      major,
      registry.view(),
      [[call('1', 's__drop'), call('2', 's__look')], [text('done')]],
      { prepareStep: () => ({ activeTools: ['s__look'] }) },
    );
    expect(read('s__drop')?.type).toBe('error-text');
    expect(read('s__look')?.type).toBe('text');
    expect(server.executions('drop')).toBe(0);
  });

  it('vercel-ai-14369: a result that has `$ref` in it goes to the model as text', async () => {
    const structuredContent = { $defs: { a: {} }, schema: { $ref: '#/$defs/a' } };
    const onCall = () => ({ content: [], structuredContent });
    await using server = await http({ tools: [{ name: 'schema', onCall }] });
    const { registry } = board({ s: server.config });
    const { read, steps } = await run(major, registry.view(), [
      [call('1', 's__schema')],
      [text('done')],
    ]);
    expect(read('s__schema')).toEqual({ type: 'text', value: JSON.stringify(structuredContent) });
    expect(steps[0]?.toolResults[0]?.output).toMatchObject({ structuredContent });
  });

  it.each<[string, (response: ServerResponse) => unknown]>([
    ['vercel-ai-19205: a server that answers 500', (response) => response.writeHead(500).end('no')],
    [
      'a stream that ends without an answer',
      (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
    ],
    [
      'an answer that is no message',
      (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"a":1}'),
    ],
  ])('%s is an error of its call at once, and the run goes on', async (_, answer) => {
    await using server = await http({ tools: [{ name: 'look', onCall: () => 'looked' }] });
    const { registry } = board({
      bad: {
        ...(await before(
          server,
          (body, response) => isCall(body) && answer(response) !== undefined,
        )),
        timeouts: { callMs: 5_000 },
      },
      good: server.config,
    });
    const { read } = await run(major, registry.view(), [
      [call('1', 'bad__look'), call('2', 'good__look')],
      [text('done')],
    ]);
    expect(read('bad__look')).toMatchObject({
      type: 'error-text',
      value: expect.stringMatching(/^Error: ./u),
    });
    expect(read('bad__look')?.value).not.toContain('It took too long');
    expect(read('good__look')).toEqual({ type: 'text', value: 'looked' });
  });

  it('vercel-ai-16399: a session that the server has forgotten is made anew, and the call that it refused runs once', async () => {
    await using server = await http({ tools: [{ name: 'look', onCall: () => 'looked' }] });
    let refusals = 0;
    const front = await before(server, (body, response) => {
      if (!isCall(body) || refusals++ > 0) return false;
      response.writeHead(404).end();
      return true;
    });
    const { registry } = board({ s: front });
    const { read } = await run(major, registry.view(), [[call('1', 's__look')], [text('done')]]);
    expect(read('s__look')).toEqual({ type: 'text', value: 'looked' });
    expect(server.executions('look')).toBe(1);
    expect(server.connections).toBe(2);
  });
});

describe.each(MAJORS)('what users of other clients report, on ai $major', (major) => {
  it('mastra-7675, -19862, openai-agents-js-195: a server that was started again is used again, and no call runs twice', async () => {
    await using server = await scriptedServer({
      tools: [{ name: 'last', onCall: 'die-once' }, { name: 'echo' }],
    });
    const { registry } = board({ s: server.config });
    const { read } = await run(major, registry.view(), [
      [call('1', 's__last')],
      [call('2', 's__echo')],
      [text('done')],
    ]);
    expect(read('s__last')).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining('may have run'),
    });
    expect(read('s__echo', 2)).toEqual({ type: 'text', value: '{}' });
    expect(server.executions('last')).toBe(1);
    expect(server.connections).toBe(2);
  });

  it('oh-my-pi-890: a server that lists its tools in another order than before costs no prompt cache', async () => {
    const tools = ['c', 'a', 'b'].map((name) => ({ name, description: `Does ${name}.` }));
    await using server = await http({ tools });
    const { registry } = board({ s: server.config });
    const view = registry.view();
    const first = await run(major, view, [[text('done')]]);
    server.setTools(tools.toReversed());
    server.die();
    const second = await run(major, view, [[call('1', 's__a')], [text('done')]]);
    const sent = [first, second].flatMap(({ seen }) =>
      seen.map((one) => JSON.stringify(one.tools)),
    );
    expect(new Set(sent).size).toBe(1);
  });

  it('mastra-13521, -18029: one server that cannot be reached costs its own tools only, and model and program know which', async () => {
    await using server = await http({ tools: [{ name: 'look', onCall: () => 'looked' }] });
    const { registry } = board({ bad: { command: '/there/is/none' }, good: server.config });
    const view = registry.view();
    const { seen, read } = await run(major, view, [[call('1', 'good__look')], [text('done')]]);
    expect(read('good__look')).toEqual({ type: 'text', value: 'looked' });
    expect(JSON.stringify(seen[0]?.prompt)).toContain('bad');
    expect((await view.compile()).problems).toMatchObject([
      { source: 'bad', message: expect.stringContaining('/there/is/none') },
    ]);
  });

  it('mcp-use-416: a server whose login cannot be found out costs its own tools only', async () => {
    await using server = await http({ tools: [{ name: 'look', onCall: () => 'looked' }] });
    const config = server.config as HttpServerConfig;
    const shut: HttpServerConfig = {
      ...config,
      label: 'shut',
      fetch: async () => new Response('no', { status: 401 }),
    };
    const { registry } = board({ shut, good: config });
    const view = registry.view();
    const { read } = await run(major, view, [[call('1', 'good__look')], [text('done')]]);
    expect(read('good__look')).toEqual({ type: 'text', value: 'looked' });
    expect((await view.compile()).problems).toMatchObject([{ source: 'shut' }]);
  });

  it('mastra-21859: a tool without a schema takes no other tool with it', async () => {
    const listed = [{ name: 'bare' }, { name: 'look', inputSchema: { type: 'object' } }];
    await using server = await http({
      tools: [{ name: 'bare', onCall: () => 'bare ran' }, { name: 'look' }],
      methods: { 'tools/list': () => ({ tools: listed }) },
    });
    const { registry } = board({ s: server.config });
    const { seen, read } = await run(major, registry.view(), [
      [call('1', 's__bare')],
      [text('done')],
    ]);
    expect(toolNames(seen[0])).toEqual(['s__bare', 's__look']);
    expect(read('s__bare')).toEqual({ type: 'text', value: 'bare ran' });
  });

  it('mastra-13769, -6529, python-sdk-1509: the headers of a user go along when tools are listed and when they are called', async () => {
    await using server = await http({ tools: [{ name: 'look', onCall: () => 'looked' }] });
    const sent = new Set<string>();
    const front = await before(server, (body, _, { authorization }) => {
      const method = /"method":"(tools\/\w+)"/u.exec(body)?.[1];
      if (method !== undefined) sent.add(`${method} ${authorization}`);
      return false;
    });
    const headers = (identity: Identity | undefined) => ({
      authorization: `Bearer of-${identity?.id}`,
    });
    const { registry } = board({ s: { ...front, headers } });
    for (const user of ['ann', 'bob'])
      await run(major, registry.view({ session: user }, { identity: { id: user } }), [
        [call('1', 's__look')],
        [text('done')],
      ]);
    expect([...sent].toSorted()).toEqual([
      'tools/call Bearer of-ann',
      'tools/call Bearer of-bob',
      'tools/list Bearer of-ann',
      'tools/list Bearer of-bob',
    ]);
  });

  it('kimi-code-2554, copilot-cli-3258: a model reads the content, the structured content, or both, as the program wants', async () => {
    const structuredContent = { rows: [1, 2] };
    const onCall = () => ({ content: [{ type: 'text', text: '2 rows' }], structuredContent });
    await using server = await http({ tools: [{ name: 'rows', onCall }] });
    const { registry } = board({ s: server.config });
    for (const [structured, reads] of [
      ['content', '2 rows'],
      ['structured', '{"rows":[1,2]}'],
      ['both', '2 rows\n{"rows":[1,2]}'],
    ] as const) {
      const { read, steps } = await run(
        major,
        registry.view(),
        [[call('1', 's__rows')], [text('done')]],
        { structured },
      );
      expect(read('s__rows')).toEqual({ type: 'text', value: reads });
      const { output } = steps[0]!.toolResults[0]! as { readonly output: ToolResult };
      expect(output.structuredContent).toEqual(structuredContent);
    }
  });

  it('mastra-7309: signs of life of a server are preliminary results', async () => {
    const onCall = (_: unknown, { progress }: ScriptedCall) => {
      progress(1, 2);
      return 'copied';
    };
    await using server = await scriptedServer({ tools: [{ name: 'copy', onCall }] });
    const { registry } = board({ s: server.config });
    const { model } = scripted(major, [[call('1', 's__copy')], [text('done')]]);
    const parts = aiSdk(registry.view(), { progress: true });
    const agent = new major.ai.ToolLoopAgent({ model, ...parts });
    const { fullStream } = await agent.stream({ prompt: 'go' });
    const shown: string[] = [];
    for await (const part of fullStream)
      if (part.type === 'tool-result' && part.preliminary === true)
        shown.push((part.output as { content: [{ text: string }] }).content[0].text);
    expect(shown).toContain('1 of 2');
  });

  it('mastra-3759: another server under an old id is the one that is used', async () => {
    await using old = await http({ tools: [{ name: 'look', onCall: () => 'old' }] });
    await using other = await http({ tools: [{ name: 'look', onCall: () => 'new' }] });
    const { registry, plug } = board({});
    const first = plug('s', old.config);
    const extensions = aiSdk(registry.view());
    const { model, seen } = scripted(major, (given) =>
      given.prompt.some(({ role }) => role === 'tool') ? [text('done')] : [call('1', 's__look')],
    );
    const agent = new major.ai.ToolLoopAgent({ model, ...extensions });
    await agent.generate({ prompt: 'go' });
    await first.close();
    plug('s', other.config);
    await agent.generate({ prompt: 'go' });
    expect([seen[1], seen[3]].map((one) => outputs(one)['s__look']?.value)).toEqual(['old', 'new']);
  });

  it('openai-agents-python-1879: agents see different tools of one server over one connection', async () => {
    await using server = await http({ tools: [{ name: 'look' }, { name: 'drop' }] });
    const { registry, connections } = board({});
    for (const [agent, include] of [
      ['reader', ['look']],
      ['owner', ['*']],
    ] as const)
      registry.register(
        new McpServerCapability({ id: 's', server: server.config, connections, include }),
        { agent, everySession: true },
      );
    const tools = async (agent: string) => {
      const view = registry.view({ session: 'a', agent });
      const { seen, read } = await run(major, view, [[call('1', 's__drop')], [text('done')]]);
      return [toolNames(seen[0]), read('s__drop')?.type];
    };
    expect(await tools('reader')).toEqual([['s__look'], 'error-text']);
    expect(await tools('owner')).toEqual([['s__drop', 's__look'], 'text']);
    expect(server.executions('drop')).toBe(1);
    expect(server.connections).toBe(1);
  });
});
