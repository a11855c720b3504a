import type { McpServerOptions } from '@patchbay/mcp';
import type { ExtensionView } from '@patchbay/protocols';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { hearing, plugged } from './plugged.ts';
import { answeringServer, RpcError, type AnsweringOptions } from './scripted.ts';

afterEach(() => void vi.restoreAllMocks());

async function listed(options: AnsweringOptions, more: Pick<McpServerOptions, 'hints'> = {}) {
  const server = await answeringServer(options);
  const board = plugged({ id: 'shop', server: server.config, ...more });
  return {
    ...board,
    server,
    asked: (method: string) => server.requests.filter((one) => one === method).length,
    [Symbol.asyncDispose]: async () => {
      await board[Symbol.asyncDispose]();
      await server.close();
    },
  };
}
const names = async (view: ExtensionView) =>
  (await view.compile()).tools.map(({ id }) => id.name).toSorted();
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });

/** Answers `tools/list` with these pages: a page is found by its cursor, `''` is the first. */
const pages = (
  byCursor: Readonly<
    Record<string, { readonly tools: readonly object[]; readonly nextCursor?: string }>
  >,
): NonNullable<AnsweringOptions['onRequest']> => {
  return ({ method, params }) => {
    if (method !== 'tools/list') return undefined;
    const page = byCursor[typeof params['cursor'] === 'string' ? params['cursor'] : ''];
    if (page === undefined) throw new RpcError(-32_603, 'No such page.');
    return page;
  };
};

describe('a list without an end', () => {
  it.each([
    ['that repeats a cursor', { '': 'a', a: 'a' }],
    ['that goes round in a circle', { '': 'a', a: 'b', b: 'a' }],
  ])('%s is cut, kept and said to be cut', async (_how, cursors) => {
    const entries = Object.entries(cursors).map(([cursor, nextCursor], i) => [
      cursor,
      { tools: [tool(`t${i}`)], nextCursor },
    ]);
    await using board = await listed({ onRequest: pages(Object.fromEntries(entries)) });
    expect(await names(board.view)).toEqual(entries.map((_, i) => `t${i}`));
    expect(board.problems).toMatchObject([
      { source: 'shop', severity: 'warning', message: expect.stringContaining('no end') },
    ]);
  });

  it('that says the same under ever new cursors is cut at the second page', async () => {
    await using board = await listed({
      onRequest: ({ method, params }) =>
        method === 'tools/list'
          ? { tools: [tool('a')], nextCursor: `${JSON.stringify(params['cursor'] ?? '')}x` }
          : undefined,
    });
    expect(await names(board.view)).toEqual(['a']);
    expect(board.asked('tools/list')).toBe(2);
  });

  it('that always has something new is cut after a thousand pages', async () => {
    let page = 0;
    await using board = await listed({
      onRequest: ({ method }) =>
        method === 'tools/list'
          ? { tools: [tool(`t${++page}`)], nextCursor: String(page) }
          : undefined,
    });
    expect(await names(board.view)).toHaveLength(1_000);
    expect(board.problems).toMatchObject([{ message: expect.stringContaining('1000 pages') }]);
  });

  it('is not what an empty page or an empty cursor makes', async () => {
    await using board = await listed({
      onRequest: pages({
        '': { tools: [tool('a')], nextCursor: '1' },
        '1': { tools: [], nextCursor: '2' },
        '2': { tools: [tool('b')], nextCursor: '' },
      }),
    });
    expect(await names(board.view)).toEqual(['a', 'b']);
    expect(board.problems).toEqual([]);
  });
});

describe('a list that is too long', () => {
  it('is cut at ten thousand entries, also on one page, and says so', async () => {
    const tools = Array.from({ length: 10_001 }, (_, i) => tool(`t${i}`));
    await using board = await listed({ tools });
    const context = { scope: {}, signal: new AbortController().signal, report: vi.fn() } as never;
    expect(await board.capability.listTools(context)).toHaveLength(10_000);
    expect((context as { report: unknown }).report).toHaveBeenCalledWith(
      expect.objectContaining({ message: expect.stringContaining('too long') }),
    );
  });

  it('of bad entries names some and counts the rest', async () => {
    const bad = Array.from({ length: 50 }, () => ({ name: '' }));
    await using board = await listed({
      onRequest: pages({ '': { tools: [...bad, tool('good')] } }),
    });
    expect(await names(board.view)).toEqual(['good']);
    expect((await board.view.compile()).problems).toHaveLength(21);
    expect((await board.view.compile()).problems.at(-1)?.message).toContain('30 more');
  });
});

describe('entries of one name', () => {
  it('are there once, and the second is said to be left out', async () => {
    const second = { ...tool('a'), description: 'the second' };
    await using board = await listed({ onRequest: pages({ '': { tools: [tool('a'), second] } }) });
    const { tools, problems } = await board.view.compile();
    expect(tools.map(({ definition }) => definition.description)).toEqual([undefined]);
    expect(problems).toMatchObject([{ message: expect.stringMatching(/second "a"/) }]);
  });
});

describe('a page that cannot be read', () => {
  it('costs only what is behind it, and nothing that was known before', async () => {
    let broken = true;
    const whole = pages({
      '': { tools: [tool('a')], nextCursor: '1' },
      '1': { tools: [tool('b')] },
    });
    await using board = await listed({
      onRequest: (request) => {
        if (request.method === 'tools/list' && request.params['cursor'] === '1' && broken)
          throw new RpcError(-32_603, 'disk on fire');
        return whole(request);
      },
    });
    expect(await names(board.view)).toEqual(['a']);
    expect(board.problems).toMatchObject([
      { severity: 'warning', message: expect.stringMatching(/page 2 .*1 entries.*disk on fire/) },
    ]);
    broken = false;
    board.server.setTools([]);
    await vi.waitFor(async () => expect(await names(board.view)).toEqual(['a', 'b']));
    broken = true;
    board.server.setTools([]);
    await vi.waitFor(async () => expect((await board.view.compile()).problems).toHaveLength(1));
    expect(await names(board.view)).toEqual(['a', 'b']);
  });
});

describe('what a server does not announce', () => {
  it('is not asked for', async () => {
    await using board = await listed({ tools: [{ name: 'a' }] });
    await board.view.compile();
    expect(await board.view.commands.list()).toEqual([]);
    expect(await board.view.resources.list()).toEqual([]);
    expect(board.asked('prompts/list') + board.asked('resources/list')).toBe(0);
  });

  it('templates need not be known by a server with resources', async () => {
    await using board = await listed({
      resources: [{ uri: 'memo://one', text: 'first' }],
      onRequest: ({ method }) => {
        if (method === 'resources/templates/list') throw new RpcError(-32_601, 'Method not found');
        return undefined;
      },
    });
    expect(await board.view.resources.exists('mcp://shop/memo%3A%2F%2Fnone')).toBe(false);
    expect(board.problems).toEqual([]);
  });
});

describe('cache hints', () => {
  /** Lets time pass without waiting for it. */
  const clock = () => {
    const real = performance.now.bind(performance);
    let ahead = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => real() + ahead);
    return (ms: number) => void (ahead += ms);
  };
  const hinted = (hints: object, listChanged: boolean): AnsweringOptions => ({
    era: 'modern',
    tools: [{ name: 'a' }],
    onRequest: ({ method }) => {
      if (method === 'tools/list') return { tools: [tool('a')], cacheScope: 'private', ...hints };
      if (method !== 'server/discover') return undefined;
      const capabilities = { tools: { listChanged } };
      return { supportedVersions: ['2026-07-28'], capabilities, ttlMs: 0, cacheScope: 'private' };
    },
  });

  it.each([true, false])(
    'a list is read again when its time is over (listChanged: %s)',
    async (tells) => {
      const pass = clock();
      await using board = await listed(hinted({ ttlMs: 60_000 }, tells));
      const first = await board.view.compile();
      pass(59_000);
      expect(await board.view.compile()).toBe(first);
      expect(board.asked('tools/list')).toBe(1);
      pass(2_000);
      expect((await board.view.compile()).tools[0]).toBe(first.tools[0]);
      expect(board.asked('tools/list')).toBe(2);
    },
  );

  it('the shortest time of its pages counts', async () => {
    const pass = clock();
    const hints = { cacheScope: 'private' };
    await using board = await listed({
      ...hinted({}, false),
      onRequest: (request) => {
        const { method, params } = request;
        if (method !== 'tools/list') return hinted({}, false).onRequest!(request);
        return params['cursor'] === undefined
          ? { tools: [tool('a')], nextCursor: '1', ttlMs: 60_000, ...hints }
          : { tools: [tool('b')], ttlMs: 1_000, ...hints };
      },
    });
    await board.view.compile();
    pass(2_000);
    await board.view.compile();
    expect(board.asked('tools/list')).toBe(4);
  });

  it('a list that may not be kept is kept where the server tells changes, else for half a minute', async () => {
    const pass = clock();
    await using tells = await listed(hinted({ ttlMs: 0 }, true));
    await using silent = await listed(hinted({ ttlMs: 0 }, false));
    for (const { view } of [tells, silent]) await view.compile();
    pass(29_000);
    for (const { view } of [tells, silent]) await view.compile();
    expect([tells.asked('tools/list'), silent.asked('tools/list')]).toEqual([1, 1]);
    pass(2_000);
    for (const { view } of [tells, silent]) await view.compile();
    expect([tells.asked('tools/list'), silent.asked('tools/list')]).toEqual([1, 2]);
  });

  it('no list is ever shown to another identity, whatever its scope says', async () => {
    let asked = 0;
    const server = await answeringServer({
      ...hinted({}, false),
      onRequest: (request) =>
        request.method === 'tools/list'
          ? { tools: [tool(`for${++asked}`)], ttlMs: 600_000, cacheScope: 'public' }
          : hinted({}, false).onRequest!(request),
    });
    await using board = plugged({ id: 'shop', server: server.config });
    const [ann, bob] = ['ann', 'bob'].map((id) => board.registry.view({}, { identity: { id } }));
    expect(await names(ann!)).toEqual(['for1']);
    expect(await names(bob!)).toEqual(['for2']);
    expect(await names(ann!)).toEqual(['for1']);
    await server.close();
  });
});

describe('notifications', () => {
  it('each becomes a change, whatever it is', async () => {
    await using board = await listed({
      tools: [{ name: 'a' }],
      prompts: [{ name: 'p', text: '' }],
      resources: [{ uri: 'memo://one', text: '' }],
    });
    await board.view.compile();
    await using told = hearing(board.view);
    const all: readonly (readonly [string, object, string, string?])[] = [
      ['notifications/tools/list_changed', {}, 'tools_changed'],
      ['notifications/prompts/list_changed', {}, 'prompts_changed'],
      ['notifications/resources/list_changed', {}, 'resources_changed'],
      [
        'notifications/resources/updated',
        { uri: 'memo://one' },
        'resource_updated',
        'mcp://shop/memo%3A%2F%2Fone',
      ],
      ['notifications/message', { level: 'info', data: 'x' }, 'notifications/message'],
      [
        'notifications/elicitation/complete',
        { elicitationId: '1' },
        'notifications/elicitation/complete',
      ],
      ['notifications/shop/sale', { percent: 20 }, 'notifications/shop/sale'],
    ];
    for (const [method, params] of all) board.server.notify(method, params as never);
    for (const [, , kind, uri] of all) await told.kind(kind, uri);
  });

  it('that say nothing about a list do not have it read again, nor anything compiled again', async () => {
    await using board = await listed({ tools: [{ name: 'a' }] });
    const before = await board.view.compile();
    const revision = board.capability.revision();
    await using told = hearing(board.view);
    board.server.notify('notifications/message', { level: 'info', data: 'x' });
    await told.kind('notifications/message');
    expect(board.capability.revision()).toBe(revision);
    expect(await board.view.compile()).toBe(before);
    expect(board.asked('tools/list')).toBe(1);
  });
});

describe('tools by what they claim', () => {
  const tools = [
    { name: 'look', annotations: { readOnlyHint: true } },
    { name: 'pay', annotations: { destructiveHint: true } },
    { name: 'silent' },
  ];

  it('are offered, listed and callable, or not at all', async () => {
    await using board = await listed({ tools }, { hints: { readOnlyHint: true } });
    // Also before anybody asked for the list.
    await expect(board.capability.callTool('pay', {})).rejects.toMatchObject({
      code: 'tool-unavailable',
    });
    expect(await board.capability.callTool('look', {})).toMatchObject({
      content: [{ text: '{}' }],
    });
    expect(await names(board.view)).toEqual(['look']);
    await expect(board.capability.callTool('silent', {})).rejects.toMatchObject({
      code: 'tool-unavailable',
    });
    expect([board.server.executions('pay'), board.server.executions('silent')]).toEqual([0, 0]);
  });

  it.each([
    [{ destructiveHint: true }, ['pay', 'silent']],
    [{ destructiveHint: false }, ['look']],
    [{ idempotentHint: true }, ['look']],
    [{ openWorldHint: true }, ['look', 'pay', 'silent']],
    [{}, ['look', 'pay', 'silent']],
  ])('%o counts what is not claimed as MCP does', async (hints, expected) => {
    await using board = await listed({ tools }, { hints });
    expect(await names(board.view)).toEqual(expected);
  });
});

describe('a lazy server', () => {
  const lazy = async (known: readonly object[] | undefined) => {
    const server = await answeringServer({ tools: [{ name: 'a' }, { name: 'b' }] });
    const board = plugged({
      id: 'shop',
      server: server.config,
      lazy: true,
      ...(known === undefined ? {} : { tools: known as never }),
    });
    return {
      ...board,
      server,
      [Symbol.asyncDispose]: async () => {
        await board[Symbol.asyncDispose]();
        await server.close();
      },
    };
  };

  it('is not started before it is used; then its own list counts, and the difference is said', async () => {
    await using board = await lazy([
      tool('a'),
      tool('gone'),
      { ...tool('b'), description: 'older' },
    ]);
    const { view, server, problems } = board;
    expect(await names(view)).toEqual(['a', 'b', 'gone']);
    expect(server.connections).toBe(0);
    await using told = hearing(view);
    await (await view.compile()).callTool('shop__a', {});
    await told.kind('tools_changed');
    expect(await names(view)).toEqual(['a', 'b']);
    expect((await view.compile()).problems).toMatchObject([
      {
        source: 'shop',
        code: 'tools-differ',
        severity: 'warning',
        message: expect.stringMatching(/without "gone", otherwise "b"/),
      },
    ]);
    expect(problems).toHaveLength(1);
  });

  it('says nothing where what was known is right', async () => {
    await using board = await lazy([tool('b'), tool('a')]);
    const [before] = (await board.view.compile()).tools;
    await (await board.view.compile()).callTool('shop__a', {});
    await vi.waitFor(() => expect(board.server.requests).toContain('tools/list'));
    const after = await board.view.compile();
    expect(after.tools).toContain(before);
    expect(after.problems).toEqual([]);
  });

  it('says nothing where nothing was known', async () => {
    await using board = await lazy(undefined);
    expect(await names(board.view)).toEqual([]);
    await board.capability.callTool('a', {});
    expect(await names(board.view)).toEqual(['a', 'b']);
    expect(board.problems).toEqual([]);
  });

  it('is used also by whoever asks for its resources or prompts', async () => {
    await using board = await lazy([tool('old')]);
    expect(await names(board.view)).toEqual(['old']);
    await board.view.resources.list();
    expect(await names(board.view)).toEqual(['a', 'b']);
  });
});
