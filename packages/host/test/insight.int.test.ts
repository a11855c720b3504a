import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createHost, type HostOptions } from '@patchbay/host';
import type { StdioServerConfig, TraceEvent } from '@patchbay/protocols';
import { scriptedServer, type ScriptedServer } from '@patchbay/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

let root: string;
const heard: TraceEvent[] = [];
const hear = (event: unknown) => void heard.push(event as TraceEvent);
const CHANNELS = ['connect', 'call', 'compile', 'change'].map((name) => `patchbay:${name}`);

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-insight-')));
  heard.length = 0;
  for (const channel of CHANNELS) subscribe(channel, hear);
});
afterEach(async () => {
  for (const channel of CHANNELS) unsubscribe(channel, hear);
  await rm(root, { recursive: true, force: true });
});

const open = (options: HostOptions = {}) =>
  createHost({ cwd: root, home: false, env: {}, watch: false, trust: () => true, ...options });
const entryOf = ({ config }: ScriptedServer) => {
  const { command, args = [] } = config as StdioServerConfig;
  return { command, args };
};
const ofType = <T extends TraceEvent['type']>(type: T) =>
  heard.filter((event): event is Extract<TraceEvent, { type: T }> => event.type === type);

describe('what happens', () => {
  it('is told on channels, with times and outcomes, without arguments or secrets', async () => {
    await using shop = await scriptedServer({
      tools: [{ name: 'pay' }, { name: 'fail', onCall: 'tool-error' }],
    });
    await using host = await open({
      onProblem: () => undefined,
      config: {
        mcp_servers: {
          shop: { ...entryOf(shop), env: { TOKEN: 'very-secret' } },
          none: { command: 'no-such-program-x' },
        },
      },
    });
    await using session = await host.openSession('s', { identity: { id: 'ann', token: 'hers' } });
    const { callTool } = await session.agent('a').view().compile();
    await callTool('shop__pay', { card: 'very-secret-too' });
    await callTool('shop__fail', {});
    await callTool('shop__gone', {}).catch(() => undefined);

    expect(ofType('connect').map(({ server, outcome }) => [server, outcome])).toEqual(
      expect.arrayContaining([
        ['shop', 'ok'],
        ['none', 'connect-failed'],
      ]),
    );
    expect(ofType('call')).toMatchObject([
      {
        name: 'shop__pay',
        tool: { capability: 'shop', name: 'pay' },
        scope: { session: 's', agent: 'a' },
        outcome: 'ok',
      },
      { name: 'shop__fail', outcome: 'tool-error' },
    ]);
    expect(ofType('compile').at(0)).toMatchObject({ outcome: 'ok', scope: { session: 's' } });
    expect(ofType('change')).toEqual(
      expect.arrayContaining([{ type: 'change', capability: 'shop', kind: 'registered' }]),
    );
    for (const event of heard)
      if ('durationMs' in event) expect(event.durationMs).toBeGreaterThanOrEqual(0);
    expect(JSON.stringify(heard)).not.toMatch(/very-secret|hers/);
  });

  it('a change that many listen to is told once', async () => {
    await using shop = await scriptedServer({ tools: [{ name: 'pay' }] });
    await using host = await open({
      config: { mcp_servers: { shop: entryOf(shop) } },
    });
    const view = host.registry.view();
    const listeners = [view.changes(), view.changes(), view.changes()].map((changes) =>
      changes[Symbol.asyncIterator](),
    );
    const next = listeners.map((listener) => listener.next());
    await view.compile();
    heard.length = 0;
    shop.setTools([{ name: 'pay' }, { name: 'refund' }]);
    await Promise.all(next);
    await expect.poll(() => ofType('change').map(({ kind }) => kind)).toContain('tools_changed');
    const told = ofType('change').filter(({ kind }) => kind === 'tools_changed');
    expect(told).toHaveLength(1);
    for (const listener of listeners) await listener.return?.();
  });
});

describe('a logger', () => {
  it('is told of problems and of what happens; nothing becomes a process warning then', async () => {
    const lines: string[] = [];
    const to = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
    const logger = { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      await using host = await open({
        logger,
        config: { mcp_servers: { none: { command: 'no-such-program-x' } } },
      });
      await host.registry.view().compile();
      expect(warned).not.toHaveBeenCalled();
    } finally {
      warned.mockRestore();
    }
    expect(lines).toContainEqual(expect.stringMatching(/^error none: no-such-program-x: command/));
    expect(lines).toContainEqual(
      expect.stringMatching(/^debug connect none connect-failed \d+\.\d ms$/),
    );
  });

  it.each([
    ['1', true],
    ['0', false],
    ['', false],
  ])('is the standard error output with PATCHBAY_DEBUG=%j: %s', async (value, expected) => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    try {
      await using host = await open({ env: { PATCHBAY_DEBUG: value } });
      await host.registry.view().compile();
      expect(written.mock.calls.some(([text]) => String(text).startsWith('patchbay debug '))).toBe(
        expected,
      );
    } finally {
      written.mockRestore();
    }
  });
});

describe('inspect()', () => {
  it('says of everything where it is from, what it offers and costs, and what is wrong with it', async () => {
    await using shop = await scriptedServer({ tools: [{ name: 'pay', description: 'Pays.' }] });
    await writeFile(
      join(root, '.mcp.json'),
      JSON.stringify({
        mcpServers: { shop: shop.config, none: { command: 'no-such-program-x' } },
      }),
    );
    await writeFile(
      join(root, 'patchbay.yaml'),
      `agents:\n  coder:\n    mcp_servers:\n      own: ${JSON.stringify(shop.config)}\n`,
    );
    await using host = await open({ onProblem: () => undefined });
    const row = (id: string) => host.inspect().capabilities.find((one) => one.id === id);
    expect(row('shop')).toMatchObject({ status: { state: 'idle' }, tools: [], problems: [] });
    await using session = await host.openSession('s');
    await session.agent('coder').view().compile();
    expect(row('shop')).toMatchObject({
      origin: '.mcp.json:1',
      scope: 'pool',
      status: { state: 'ready' },
      tools: ['shop__pay'],
      problems: [],
    });
    expect(row('shop')!.estimatedTokens).toBeGreaterThan(5);
    expect(row('none')).toMatchObject({
      status: { state: 'degraded', retryAt: expect.any(String) },
      problems: [{ code: 'connect-failed' }],
    });
    expect(row('own')).toMatchObject({ origin: 'patchbay.yaml:4', tools: ['own__pay'] });
    expect(host.inspect().connections).toContainEqual(
      expect.objectContaining({
        state: 'ready',
        pid: expect.any(Number),
        calls: expect.any(Number),
      }),
    );
    expect(() => structuredClone(host.inspect())).not.toThrow();
  });
});
