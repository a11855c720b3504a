import {
  ConnectionPool,
  eraMemory,
  type EraStore,
  type EraVerdict,
} from '@patchbay/connection-pool';
import type { Problem } from '@patchbay/protocols';
import { scriptedServer, type ScriptedServerOptions } from '@patchbay/testkit';
import { describe, expect, it, vi } from 'vitest';

import { textOf } from './case-server.ts';

const TOOLS = [{ name: 'echo' }];
const backOff = { firstMs: 1, maxMs: 20 };
const HANDSHAKES = new Set(['server/discover', 'initialize']);

async function served(options: ScriptedServerOptions = {}, eras: EraStore = eraMemory()) {
  const server = await scriptedServer({ tools: TOOLS, ...options });
  const problems: Problem[] = [];
  const pool = new ConnectionPool({
    backOff,
    eras,
    onProblem: (problem) => void problems.push(problem),
  });
  return {
    server,
    pool,
    problems,
    handshakes: () => server.requests.filter((method) => HANDSHAKES.has(method)),
    call: async (identity?: string) => {
      const asker = identity === undefined ? {} : { identity: { id: identity } };
      await using lease = await pool.acquire(server.config, asker);
      return textOf(await lease.value.callTool('echo', { text: 'hi' }));
    },
    [Symbol.asyncDispose]: async () => {
      await pool.close();
      await server.close();
    },
  };
}

/** What a server of 2026-07-28 says about itself, good for a minute. */
const ABOUT = {
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  ttlMs: 60_000,
  cacheScope: 'private',
};
const saysForAMinute = { 'server/discover': () => ABOUT };
const TRANSPORTS = ['stdio', 'http'] as const;

describe.concurrent.each(TRANSPORTS)('what an older server over %s is', (transport) => {
  it('is asked once, not again at a reconnect', async () => {
    await using board = await served({ transport });
    await board.call();
    board.server.die();
    if (transport === 'stdio')
      await vi.waitFor(() => expect(board.pool.status(board.server.config).state).toBe('lost'));
    else await board.pool.close();
    await using again = new ConnectionPool();
    const pool = transport === 'stdio' ? board.pool : again;
    await using lease = await pool.acquire(board.server.config);
    expect(textOf(await lease.value.callTool('echo', {}))).toBe('{}');
    const expected = ['server/discover', 'initialize', 'initialize'];
    if (transport === 'http') expected.splice(2, 0, 'server/discover');
    expect(board.handshakes()).toEqual(expected);
  });

  it('is known to the next pool, where both remember in one place', async () => {
    const eras = eraMemory();
    await using board = await served({ transport }, eras);
    await board.call();
    await using next = new ConnectionPool({ eras });
    await using lease = await next.acquire(board.server.config);
    expect(lease.value.info.era).toBe('legacy');
    expect(board.handshakes()).toEqual(['server/discover', 'initialize', 'initialize']);
  });

  it('is asked again where a newer one is there now', async () => {
    const eras: EraStore = { ...eraMemory(), get: () => ({ era: 'legacy', at: Date.now() }) };
    await using board = await served({ transport, era: 'modern' }, eras);
    expect(await board.call()).toContain('hi');
    expect(board.handshakes()).toEqual(['initialize', 'server/discover']);
  });
});

describe.concurrent('what a newer server over HTTP is', () => {
  it('is not asked again for as long as the server says', async () => {
    const eras = eraMemory();
    await using board = await served(
      { transport: 'http', era: 'modern', methods: saysForAMinute },
      eras,
    );
    await board.call();
    await using next = new ConnectionPool({ eras });
    await using lease = await next.acquire(board.server.config);
    expect(textOf(await lease.value.callTool('echo', {}))).toBe('{}');
    expect(board.handshakes()).toEqual(['server/discover']);
  });

  it('is asked each time where it says that its word does not last', async () => {
    const eras = eraMemory();
    await using board = await served({ transport: 'http', era: 'modern' }, eras);
    await board.call();
    await using next = new ConnectionPool({ eras });
    await using lease = await next.acquire(board.server.config);
    expect(lease.value.info.era).toBe('modern');
    expect(board.handshakes()).toEqual(['server/discover', 'server/discover']);
  });

  it('is asked again where an older one is there now', async () => {
    const memory = eraMemory();
    let known: EraVerdict | undefined = { era: 'modern', at: Date.now(), discover: ABOUT };
    const eras: EraStore = { ...memory, get: () => known, delete: () => (known = undefined) };
    await using board = await served({ transport: 'http' }, eras);
    expect(await board.call()).toContain('hi');
    expect(board.pool.status(board.server.config).state).toBe('ready');
    expect(board.handshakes()).toEqual(['server/discover', 'initialize']);
    expect(board.server.executions('echo')).toBe(1);
  });

  it('is never told for another identity', async () => {
    await using board = await served({
      transport: 'http',
      era: 'modern',
      methods: saysForAMinute,
    });
    await board.call('ann');
    await board.call('bob');
    expect(board.handshakes()).toEqual(['server/discover', 'server/discover']);
  });

  it('is not another one because a token was renewed', async () => {
    let token = 0;
    await using board = await served({
      transport: 'http',
      era: 'modern',
      methods: saysForAMinute,
    });
    const config = {
      ...board.server.config,
      headers: () => ({ authorization: `Bearer ${++token}` }),
    };
    for (let i = 0; i < 3; i++) {
      await using lease = await board.pool.acquire(config, { identity: { id: 'ann' } });
      await lease.value.callTool('echo', {});
    }
    expect(token).toBe(3);
    expect(board.handshakes()).toEqual(['server/discover']);
  });
});

describe.concurrent('a server that exits at the first question', () => {
  it('is started once more without it, and not asked again afterwards', async () => {
    const exits = {
      'server/discover': () => {
        board.server.die();
        return undefined;
      },
    };
    await using board = await served({ methods: exits });
    expect(await board.call()).toContain('hi');
    board.server.die();
    await vi.waitFor(() => expect(board.pool.status(board.server.config).state).toBe('lost'));
    expect(await board.call()).toContain('hi');
    expect(board.handshakes()).toEqual(['server/discover', 'initialize', 'initialize']);
  });
});

describe.concurrent('the memory of eras', () => {
  it('counts for a week where the server is an older one', async () => {
    const dayMs = 24 * 3_600_000;
    const ages = [8, 6];
    const eras: EraStore = {
      ...eraMemory(),
      get: () => ({ era: 'legacy', at: Date.now() - ages.shift()! * dayMs }),
    };
    await using board = await served({}, eras);
    await board.call('ann');
    await board.call('bob');
    expect(board.handshakes()).toEqual(['server/discover', 'initialize', 'initialize']);
  });

  it('may fail: that costs only the question, and is told', async () => {
    const broken = async () => {
      throw new Error('disk full');
    };
    await using board = await served({}, { get: broken, set: broken, delete: broken });
    expect(await board.call()).toContain('hi');
    expect(board.problems).toMatchObject([
      { severity: 'warning', message: expect.stringContaining('disk full') },
      { severity: 'warning' },
    ]);
  });

  it('may hold anything: what is no verdict is none', async () => {
    const nonsense = ['modern', { era: 'modern', at: Date.now(), discover: null }, { era: 'x' }];
    for (const one of nonsense) {
      const eras = { ...eraMemory(), get: () => one as unknown as EraVerdict };
      await using board = await served({ transport: 'http' }, eras);
      expect(await board.call()).toContain('hi');
    }
  });
});

describe.concurrent('an answer of a newer server that does not say what it is', () => {
  it.each(TRANSPORTS)('is a whole one, over %s', async (transport) => {
    await using board = await served({
      transport,
      era: 'modern',
      methods: {
        'tools/call': () => ({
          resultType: undefined,
          content: [{ type: 'text', text: 'unmarked' }],
        }),
      },
    });
    for (let i = 0; i < 4; i++) expect(await board.call()).toBe('unmarked');
    // An older server would answer so, too: what it is, is asked once more, not each time.
    expect(board.handshakes()).toEqual(['server/discover', 'server/discover']);
    expect(board.server.executions('echo')).toBe(0);
  });
});
