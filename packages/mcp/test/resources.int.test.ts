import { createMcpHandler, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { toMcpUri, toServerUri } from '@patchbay/mcp';
import { describe, expect, it, vi } from 'vitest';

import { hearing, plugged } from './plugged.ts';
import { answeringServer, RpcError, type AnsweringOptions } from './scripted.ts';

const context = () =>
  ({ scope: {}, signal: new AbortController().signal, report: () => {} }) as never;

describe('mcp://<server>/…', () => {
  it.each(['memo://one', 'file:///a b/ü%20.txt', 'https://x.test/?q=1&r=[2]#f', 'urn:x'])(
    'stands for %s, both ways',
    async (uri) => {
      expect(toServerUri('my shop/1', toMcpUri('my shop/1', uri))).toBe(uri);
      await using server = await answeringServer({ resources: [{ uri, text: 'here' }] });
      await using board = plugged({ id: 'shop', server: server.config });
      const canonical = toMcpUri('shop', uri);
      expect((await board.view.resources.list()).map((entry) => entry.uri)).toEqual([canonical]);
      expect(await board.view.resources.read(canonical)).toEqual([
        { type: 'resource', uri: canonical, text: 'here' },
      ]);
    },
  );

  it('of another server, or with bad encoding, is refused', () => {
    for (const uri of ['mcp://other/memo%3A%2F%2Fone', 'memo://one', 'mcp://shop/%E0%A4%A'])
      expect(() => toServerUri('shop', uri)).toThrow(
        expect.objectContaining({ code: 'invalid-uri' }),
      );
  });
});

describe('what a template covers', () => {
  const templates = [
    'city://{country}/{city}',
    'file:///{+path}',
    'find://all{?q,page}',
    'tree://top{/steps*}',
  ];
  it.each([
    ['city://de/Berlin', true],
    ['city://de/Berlin/Mitte', false],
    ['city://de/', false],
    ['file:///a/b/c.txt', true],
    ['find://all', true],
    ['find://all?q=x&page=2', true],
    ['find://all/x', false],
    ['tree://top/a/b', true],
    ['tree://top', true],
    ['tree://topless', false],
  ])('%s: %s', async (uri, exists) => {
    await using server = await answeringServer({
      resources: [{ uri: 'memo://one', text: '' }],
      onRequest: ({ method }) =>
        method === 'resources/templates/list'
          ? { resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: 't' })) }
          : undefined,
    });
    await using board = plugged({ id: 'shop', server: server.config });
    expect(await board.view.resources.exists(toMcpUri('shop', uri))).toBe(exists);
  });

  it('is found out in time, whatever a server sends as template', async () => {
    const uriTemplate = `x://${'{a}{b}-'.repeat(2_000)}!`;
    await using server = await answeringServer({
      resources: [{ uri: 'memo://one', text: '' }],
      onRequest: ({ method }) =>
        method === 'resources/templates/list'
          ? { resourceTemplates: [{ uriTemplate, name: 't' }] }
          : undefined,
    });
    await using board = plugged({ id: 'shop', server: server.config });
    const uri = toMcpUri('shop', `x://${'a-'.repeat(500)}`);
    expect(await board.view.resources.exists(uri)).toBe(false);
  });
});

describe('contents', () => {
  it('are text, binary or what was not understood, several, with what is said beside them', async () => {
    const contents = [
      { uri: 'memo://dir/a', mimeType: 'text/plain', text: 'a', _meta: { line: 1 } },
      { uri: 'memo://dir/b', blob: 'aGk=', annotations: { priority: 0.5 } },
      { uri: 'memo://dir/c' },
      'nonsense',
    ];
    await using server = await answeringServer({
      resources: [{ uri: 'memo://dir', text: '' }],
      onRequest: ({ method }) => (method === 'resources/read' ? { contents } : undefined),
    });
    await using board = plugged({ id: 'shop', server: server.config });
    expect(await board.view.resources.read(toMcpUri('shop', 'memo://dir'))).toEqual([
      {
        type: 'resource',
        uri: toMcpUri('shop', 'memo://dir/a'),
        mimeType: 'text/plain',
        text: 'a',
        meta: { line: 1 },
      },
      {
        type: 'resource',
        uri: toMcpUri('shop', 'memo://dir/b'),
        data: 'aGk=',
        annotations: { priority: 0.5 },
      },
      { type: 'unknown', raw: { uri: 'memo://dir/c' } },
      { type: 'unknown', raw: 'nonsense' },
    ]);
  });

  it.each([-32_002, -32_602])('that are not there are not found (%i)', async (code) => {
    await using server = await answeringServer({
      resources: [{ uri: 'memo://gone', text: '' }],
      onRequest: ({ method }) => {
        if (method === 'resources/read') throw new RpcError(code, 'Resource not found');
        return undefined;
      },
    });
    await using board = plugged({ id: 'shop', server: server.config });
    await expect(board.view.resources.read(toMcpUri('shop', 'memo://gone'))).rejects.toMatchObject({
      code: 'not-found',
      message: expect.stringContaining('memo://gone'),
    });
  });
});

describe('updates of a resource', () => {
  const URI = 'memo://one';
  const CANONICAL = toMcpUri('shop', URI);
  const older = (capability: object, more: AnsweringOptions = {}): AnsweringOptions => ({
    tools: [{ name: 'echo' }],
    resources: [
      { uri: URI, text: '' },
      { uri: 'memo://two', text: '' },
    ],
    onRequest: ({ method, params }) => {
      if (method === 'initialize')
        return {
          protocolVersion: params['protocolVersion'],
          serverInfo: { name: 's', version: '1' },
          capabilities: { tools: {}, resources: capability },
        };
      if (method === 'resources/subscribe' && params['uri'] === 'memo://two')
        throw new RpcError(-32_602, 'Not this one.');
      return /^resources\/(un)?subscribe$/.test(method) ? {} : undefined;
    },
    ...more,
  });

  it('are told by an older server: subscribed once, however many watch, and again after a loss', async () => {
    await using server = await answeringServer(older({ subscribe: true }));
    await using board = plugged({ id: 'shop', server: server.config });
    await using told = hearing(board.view);
    const [ann, bob] = [new AbortController(), new AbortController()];
    await board.view.resources.watch(CANONICAL, { signal: ann.signal });
    await board.view.resources.watch(CANONICAL, { signal: bob.signal });
    const asked = (method: string) => server.requests.filter((one) => one === method).length;
    expect(asked('resources/subscribe')).toBe(1);
    server.notify('notifications/resources/updated', { uri: URI });
    await told.kind('resource_updated', CANONICAL);

    told.heard.length = 0;
    server.die();
    await vi.waitFor(() => expect(board.capability.status()).toMatchObject({ state: 'lost' }));
    await board.capability.callTool('echo', {});
    // Whether it changed meanwhile is not known.
    await told.kind('resource_updated', CANONICAL);
    expect(asked('resources/subscribe')).toBe(2);

    ann.abort();
    expect(asked('resources/unsubscribe')).toBe(0);
    bob.abort();
    await vi.waitFor(() => expect(asked('resources/unsubscribe')).toBe(1));
  });

  it('that a server refuses are refused here, and nothing is left of it', async () => {
    await using server = await answeringServer(older({ subscribe: true }));
    await using board = plugged({ id: 'shop', server: server.config });
    const { signal } = new AbortController();
    const refused = board.view.resources.watch(toMcpUri('shop', 'memo://two'), { signal });
    await expect(refused).rejects.toMatchObject({
      code: 'protocol-error',
      message: expect.stringContaining('Not this one'),
    });
    await board.view.resources.watch(CANONICAL, { signal });
    expect(server.requests.filter((one) => one === 'resources/subscribe')).toHaveLength(2);
  });

  it('are not asked of a server that does not announce them', async () => {
    await using server = await answeringServer(older({}));
    await using board = plugged({ id: 'shop', server: server.config });
    const { signal } = new AbortController();
    await expect(board.view.resources.watch(CANONICAL, { signal })).rejects.toMatchObject({
      code: 'not-supported',
    });
    expect(server.requests).not.toContain('resources/subscribe');
  });

  it('end with the capability, also where nobody said so', async () => {
    await using server = await answeringServer(older({ subscribe: true }));
    await using board = plugged({ id: 'shop', server: server.config });
    await board.capability.watchResource(CANONICAL, context());
    await board.registry.close();
    expect(server.requests.at(-1)).toBe('resources/unsubscribe');
  });

  it('are told by a newer server over one stream, which grows and shrinks', async () => {
    const handler = createMcpHandler(() => {
      const made = new McpServer(
        { name: 'memos', version: '1' },
        { capabilities: { resources: { subscribe: true, listChanged: true } } },
      );
      const template = new ResourceTemplate('memo://{name}', { list: undefined });
      made.registerResource('memo', template, {}, (uri) => ({
        contents: [{ uri: uri.href, text: 'memo' }],
      }));
      return made;
    });
    const streams: string[] = [];
    const inside: typeof fetch = async (input, init) => {
      const { method, params } = JSON.parse(init?.body as string) as {
        readonly method: string;
        readonly params: { readonly notifications?: object };
      };
      const wanted = params?.notifications as { readonly resourceSubscriptions?: string[] };
      if (method === 'subscriptions/listen') streams.push(String(wanted.resourceSubscriptions));
      return handler.fetch(new Request(input, init));
    };
    await using board = plugged({
      id: 'shop',
      server: { url: 'http://inside.test/mcp', fetch: inside },
    });
    await using told = hearing(board.view);
    const [one, two] = [new AbortController(), new AbortController()];
    await board.view.resources.watch(CANONICAL, { signal: one.signal });
    await board.view.resources.watch(toMcpUri('shop', 'memo://two'), { signal: two.signal });
    handler.notify.resourceUpdated('memo://one');
    handler.notify.resourceUpdated('memo://two');
    await told.kind('resource_updated', CANONICAL);
    await told.kind('resource_updated', toMcpUri('shop', 'memo://two'));
    one.abort();
    await vi.waitFor(() => expect(streams.at(-1)).toBe('memo://two'));
    expect(streams.filter((uris) => uris.includes('memo'))).toEqual([
      'memo://one',
      'memo://one,memo://two',
      'memo://two',
    ]);
    await board.pool.close();
    await handler.close();
  });
});
