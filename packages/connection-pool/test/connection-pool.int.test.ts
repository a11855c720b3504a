import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import { Stopper, type McpClient, type Problem, type StdioServerConfig } from '@patchbay/protocols';
import { describe, expect, it, vi } from 'vitest';

import { behindShell, groupMembers, raw } from './servers.ts';

const fast: PoolOptions = { backOff: { firstMs: 1, maxMs: 50 } };

async function open(pool: ConnectionPool, config: StdioServerConfig): Promise<McpClient> {
  await using lease = await pool.acquire(config);
  return lease.value;
}
const textOf = ({ content }: { readonly content: readonly unknown[] }) =>
  (content[0] as { text: string }).text;

describe.concurrent('sharing', () => {
  it('makes one process for a hundred concurrent first uses', async () => {
    await using pool = new ConnectionPool();
    const config = raw();
    const clients = await Promise.all(Array.from({ length: 100 }, () => open(pool, config)));
    const results = await Promise.all(
      clients.map((client, i) => client.callTool('echo', { text: `m${i}` })),
    );
    expect(results.map(textOf)).toEqual(clients.map((_, i) => `m${i}`));
    expect(pool.inspect()).toHaveLength(1);
    expect(pool.inspect()[0]).toMatchObject({
      state: 'ready',
      calls: 100,
      server: process.execPath,
    });
  });

  it('keeps identities, environments and sessions apart as configured', async () => {
    await using pool = new ConnectionPool();
    const [ann, bob] = [{ id: 'ann' }, { id: 'bob' }];
    const pids = async (config: StdioServerConfig) => {
      for (const identity of [ann, bob, ann])
        await (await pool.acquire(config, { identity, scope: { session: '1' } })).close();
      return new Set(pool.inspect().map(({ pid }) => pid)).size;
    };
    expect(await pids(raw())).toBe(2);
    expect(await pids({ ...raw(), sharing: 'everyone' })).toBe(3);
    expect(await pids({ ...raw(), sharing: 'everyone', env: { TOKEN: 'x' } })).toBe(4);
    await (
      await pool.acquire(
        { ...raw(), sharing: 'session' },
        { identity: ann, scope: { session: '2' } },
      )
    ).close();
    expect(pool.inspect()).toHaveLength(5);
  });

  it('closes what nobody used for long enough, and makes it again', async () => {
    await using pool = new ConnectionPool({ idleMs: 5 });
    const lease = await pool.acquire(raw());
    const { pid } = pool.inspect()[0]!;
    await lease.close();
    await vi.waitFor(() => expect(groupMembers(pid!)).toBe(0));
    expect(pool.inspect()).toEqual([]);
    await using again = await pool.acquire(raw());
    expect(textOf(await again.value.callTool('echo', { text: 'hi' }))).toBe('hi');
  });

  it('closes for being idle what was given up while it connected', async () => {
    await using pool = new ConnectionPool({ idleMs: 5 });
    const config = raw({ init: 'slow' });
    const stop = new AbortController();
    const gaveUp = pool.acquire(config, { signal: stop.signal });
    await vi.waitFor(() => expect(pool.status(config)).toMatchObject({ state: 'connecting' }));
    stop.abort();
    await expect(gaveUp).rejects.toMatchObject({ code: 'aborted' });
    await vi.waitFor(() => expect(pool.inspect()).toEqual([]), { timeout: 15_000 });
  });

  it('gives up to start a further process after a while, with a clear error', async () => {
    await using pool = new ConnectionPool({ maxClients: 1, maxWaitMs: 200 });
    await using used = await pool.acquire(raw());
    const stop = new AbortController();
    const busy = used.value.callTool('never', {}, { signal: stop.signal }).catch(() => undefined);
    await expect(pool.acquire(raw({ more: 1 }))).rejects.toMatchObject({
      code: 'pool-exhausted',
      message: expect.stringContaining('`maxClients`'),
    });
    stop.abort();
    await busy;
  });

  it('lets further processes wait, and ends what nobody uses first', async () => {
    await using pool = new ConnectionPool({ maxClients: 1 });
    await (await pool.acquire(raw())).close();
    await using next = await pool.acquire(raw({ more: 2 }));
    expect(textOf(await next.value.callTool('echo', { text: 'next' }))).toBe('next');
    expect(pool.inspect().filter(({ pid }) => pid !== undefined)).toHaveLength(1);
  });
});

describe.concurrent('processes', () => {
  it.each([
    ['a polite server', raw()],
    ['a server behind a shell', behindShell()],
    ['a server that ignores the end of its input', raw({ ignoreEof: true })],
    ['a tree that ignores that and SIGTERM', behindShell({ ignoreEof: true, ignoreTerm: true })],
    [
      'a large tree that ignores both',
      behindShell({ ignoreEof: true, ignoreTerm: true, megabytes: 300 }),
    ],
  ])('leaves nothing of %s', async (_name, config) => {
    const pool = new ConnectionPool();
    await open(pool, config);
    const { pid } = pool.inspect()[0]!;
    expect(groupMembers(pid!)).toBeGreaterThan(0);
    await Promise.all([pool.close(), pool.close()]);
    expect(groupMembers(pid!)).toBe(0);
    await expect(pool.acquire(config)).rejects.toMatchObject({ code: 'closed' });
  });

  it('gives a child a minimal environment and what is configured', async () => {
    process.env['PATCHBAY_TEST_SECRET'] = 'do not pass on';
    try {
      const script = `process.stdin.resume(); process.stderr.write(JSON.stringify(process.env)); process.exit(1)`;
      await using pool = new ConnectionPool();
      const config = { command: process.execPath, args: ['-e', script], env: { MODE: 'x' } };
      const error: unknown = await pool.acquire(config).catch((thrown: unknown) => thrown);
      const { stderr } = (error as { details: { stderr: string } }).details;
      expect(stderr).toContain('"MODE":"x"');
      expect(stderr).toContain('"PATH"');
      expect(stderr).not.toContain('PATCHBAY_TEST_SECRET');
    } finally {
      delete process.env['PATCHBAY_TEST_SECRET'];
    }
  });

  it('drains stderr of a server that writes blocking', async () => {
    await using pool = new ConnectionPool();
    const client = await open(pool, raw());
    expect(textOf(await client.callTool('flood', { bytes: 2_000_000, blocking: true }))).toBe(
      'flooded',
    );
  });

  it('reads a large line, and ends only the call that exceeds the limit', async () => {
    await using pool = new ConnectionPool(fast);
    const client = await open(pool, raw());
    expect(textOf(await client.callTool('huge', { bytes: 10_000_000 })).length).toBe(10_000_000);
    await using small = new ConnectionPool({ ...fast, maxLineBytes: 1_000_000 });
    const bounded = await open(small, raw());
    const { pid } = small.inspect()[0]!;
    const other = bounded.callTool('slow', { ms: 200 });
    await expect(bounded.callTool('huge', { bytes: 10_000_000 })).rejects.toMatchObject({
      code: 'too-large',
      message: expect.stringContaining('1000000 bytes'),
    });
    expect(textOf(await other)).toBe('slow');
    expect(small.inspect()[0]!.pid).toBe(pid);
    expect(textOf(await bounded.callTool('echo', { text: 'on' }))).toBe('on');
  });

  it('starts only what is allowed', async () => {
    await using pool = new ConnectionPool({ allowCommands: ['docker'] });
    await expect(pool.acquire(raw())).rejects.toMatchObject({ code: 'connect-failed' });
  });
});

describe.concurrent('a failed start', () => {
  it.each([
    [
      'a command that is not there',
      { command: 'no-such-command-x' },
      /no-such-command-x: command not found.*PATH/,
    ],
    [
      'a folder that is not there',
      { command: process.execPath, cwd: '/no/such/folder' },
      /working directory \/no\/such\/folder/,
    ],
    ['an empty command', { command: ' ' }, /command is empty/],
  ])('names %s', async (_name, config, message) => {
    await using pool = new ConnectionPool();
    await expect(pool.acquire(config)).rejects.toMatchObject({
      code: 'connect-failed',
      message: expect.stringMatching(message),
    });
  });

  it('uxc-210: has the exit code and the end of stderr, without configured secrets', async () => {
    await using pool = new ConnectionPool();
    const script = `process.stderr.write('bad key ' + process.env.KEY + '\\n'); process.exit(3)`;
    const config = {
      command: process.execPath,
      args: ['-e', script],
      env: { KEY: 's3cr3t-value' },
    };
    const error: unknown = await pool.acquire(config).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'connect-failed',
      details: { exitCode: 3, stderr: 'bad key ***' },
    });
    expect(JSON.stringify([error, (error as Error).message, pool.inspect()])).not.toContain(
      's3cr3t',
    );
  });

  it('is remembered until its retry time, then tried once', async () => {
    await using pool = new ConnectionPool({ backOff: { firstMs: 60_000, maxMs: 60_000 } });
    const config = { command: 'no-such-command-x' };
    await expect(pool.acquire(config)).rejects.toMatchObject({ code: 'connect-failed' });
    await expect(pool.acquire(config)).rejects.toMatchObject({
      code: 'unavailable',
      details: { retryAt: expect.stringMatching(/^\d{4}-/) },
    });
    expect(pool.status(config)).toMatchObject({ state: 'degraded', retryAt: expect.any(String) });
  });

  it('claude-code-35287: ends a server that never answers, and its process', async () => {
    await using pool = new ConnectionPool();
    const config = {
      ...raw({ init: 'mute', discover: 'mute', ignoreEof: true }),
      timeouts: { connectMs: 150 },
    };
    await expect(pool.acquire(config)).rejects.toMatchObject({ code: 'timeout' });
    expect(pool.status(config).pid).toBeUndefined();
  });

  it('is shared by all who wait, and may be given up by one of them', async () => {
    await using pool = new ConnectionPool(fast);
    const stop = new AbortController();
    const config = raw({ init: 'slow' });
    const [gaveUp, waited] = [pool.acquire(config, { signal: stop.signal }), pool.acquire(config)];
    const reason = new Error('not interested');
    stop.abort(reason);
    await expect(gaveUp).rejects.toMatchObject({ code: 'aborted', cause: reason });
    await using lease = await waited;
    expect(lease.value.info.name).toBe('raw');
  });
});

describe.concurrent('eras', () => {
  it.each([
    ['an older server that refuses the probe', raw({ discover: 'error' }), 'legacy'],
    ['an older server that exits at the probe', raw({ discover: 'exit' }), 'legacy'],
    ['a newer server', raw({ era: 'modern' }), 'modern'],
  ])('speaks with %s', async (_name, config, era) => {
    await using pool = new ConnectionPool();
    const client = await open(pool, config);
    expect(client.info.era).toBe(era);
    expect(textOf(await client.callTool('echo', { text: 'hi' }))).toBe('hi');
    expect((await client.listTools()).items.length).toBeGreaterThan(20);
  });
});

describe.concurrent('every call ends', () => {
  it('when the server dies: the outcome is unknown, the next call works', async () => {
    await using pool = new ConnectionPool(fast);
    const client = await open(pool, raw());
    const [before, generation] = [pool.inspect()[0]!.pid, client.generation];
    await expect(client.callTool('die', {})).rejects.toMatchObject({
      code: 'outcome-unknown',
      details: { exitCode: 3 },
    });
    expect(pool.inspect()[0]).toMatchObject({ state: 'lost' });
    expect(textOf(await client.callTool('echo', { text: 'back' }))).toBe('back');
    expect(pool.inspect()[0]!.pid).not.toBe(before);
    expect(client.generation).toBeGreaterThan(generation);
  });

  it('when a wrapper dies and leaves a stubborn grandchild', async () => {
    await using pool = new ConnectionPool(fast);
    const client = await open(pool, behindShell({ ignoreEof: true, ignoreTerm: true }));
    const { pid } = pool.inspect()[0]!;
    const call = client.callTool('never', {});
    process.kill(pid!, 'SIGKILL');
    await expect(call).rejects.toMatchObject({ code: 'outcome-unknown' });
    await vi.waitFor(() => expect(groupMembers(pid!)).toBe(0));
  });

  it('is repeated after a loss only if it may be', async () => {
    await using pool = new ConnectionPool(fast);
    const client = await open(pool, raw());
    await expect(client.callTool('die', {}, { repeatable: true })).rejects.toMatchObject({
      code: 'outcome-unknown',
    });
    expect(pool.inspect()[0]!.calls).toBe(2);
    await expect(client.callTool('die', {})).rejects.toMatchObject({ code: 'outcome-unknown' });
    expect(pool.inspect()[0]!.calls).toBe(3);
  });

  it('as each of those who share the connection wishes', async () => {
    await using pool = new ConnectionPool(fast);
    const config = raw();
    const patient = await open(pool, config);
    const hasty = await open(pool, { ...config, timeouts: { callMs: 50 } });
    const careful = await open(pool, { ...config, replay: 'never' });
    await expect(hasty.callTool('slow', { ms: 400 })).rejects.toMatchObject({ code: 'timeout' });
    expect(textOf(await patient.callTool('slow', { ms: 100 }))).toBe('slow');
    expect(pool.inspect()).toMatchObject([{ calls: 2 }]);
    await expect(careful.callTool('die', {}, { repeatable: true })).rejects.toMatchObject({
      code: 'outcome-unknown',
    });
    expect(pool.inspect()).toMatchObject([{ calls: 3 }]);
  });

  it('when it has no answer in time; a sign of life extends it, up to a maximum', async () => {
    await using pool = new ConnectionPool();
    const client = await open(pool, { ...raw(), timeouts: { callMaxMs: 1_200 } });
    await expect(client.callTool('never', {}, { timeoutMs: 50 })).rejects.toMatchObject({
      code: 'timeout',
    });
    const progress: number[] = [];
    const slow = client.callTool(
      'slow',
      { ms: 600, progress: true },
      { timeoutMs: 400, onProgress: (p) => progress.push(p.progress) },
    );
    expect(textOf(await slow)).toBe('slow');
    expect(progress.length).toBeGreaterThan(1);
    await expect(
      client.callTool('slow', { ms: 20_000, progress: true }, { timeoutMs: 20_000 }),
    ).rejects.toMatchObject({ code: 'timeout' });
    expect(textOf(await client.callTool('echo', { text: 'still here' }))).toBe('still here');
  });

  it('openai-agents-js-1530: when its caller aborts; the connection stays', async () => {
    await using pool = new ConnectionPool();
    const client = await open(pool, raw());
    const { pid } = pool.inspect()[0]!;
    const stop = new AbortController();
    const call = client.callTool('never', {}, { signal: stop.signal });
    const reason = new Error('alice closed the tab');
    stop.abort(reason);
    await expect(call).rejects.toMatchObject({ code: 'aborted', cause: reason });
    await expect(client.callTool('echo', {}, { signal: stop.signal })).rejects.toMatchObject({
      code: 'aborted',
    });
    expect(textOf(await client.callTool('echo', { text: 'hi' }))).toBe('hi');
    expect(pool.inspect()[0]!.pid).toBe(pid);
  });

  it('when it is stopped by something that is no AbortSignal; none is asked for', async () => {
    await using pool = new ConnectionPool();
    const client = await open(pool, raw());
    const stop = new Stopper();
    const call = client.callTool(
      'never',
      {},
      {
        stop,
        get signal(): AbortSignal {
          throw new Error('It was read.');
        },
      },
    );
    stop.end('enough');
    await expect(call).rejects.toMatchObject({ code: 'aborted', cause: 'enough' });
    await expect(client.callTool('echo', {}, { stop })).rejects.toMatchObject({ code: 'aborted' });
    await expect(pool.acquire(raw(), { stop, signal: stop.signal })).rejects.toMatchObject({
      code: 'aborted',
    });
  });

  it('when the pool is closed', async () => {
    const pool = new ConnectionPool();
    const client = await open(pool, raw());
    const call = client.callTool('never', {});
    const settled = call.catch((error: unknown) => error);
    await pool.close();
    expect(await settled).toMatchObject({
      code: expect.stringMatching(/closed|connection-lost|outcome-unknown/),
    });
  });
});

describe.concurrent('answers', () => {
  it('takes results, errors and refusals for what they are', async () => {
    await using pool = new ConnectionPool();
    const client = await open(pool, raw());
    expect(await client.callTool('toolError', {})).toEqual({
      content: [{ type: 'text', text: 'it failed' }],
      isError: true,
    });
    expect(await client.callTool('badStructured', {})).toMatchObject({
      structuredContent: { n: 'not a number' },
    });
    await expect(client.callTool('rpcError', {})).rejects.toMatchObject({
      code: 'protocol-error',
      details: { rpcCode: -32602, data: { hint: 'n' } },
    });
  });

  it('opencode-24414: goes on when the server writes text to its output, and says so once', async () => {
    const problems: Problem[] = [];
    await using pool = new ConnectionPool({ onProblem: (problem) => void problems.push(problem) });
    const client = await open(pool, raw({ banner: true }));
    expect(textOf(await client.callTool('garbage', {}))).toBe('after garbage');
    expect(problems).toHaveLength(1);
    expect(problems[0]?.message).toContain('Welcome to the raw server');
  });

  it('reads all pages, and cuts a list that has no end', async () => {
    await using pool = new ConnectionPool();
    const paged = await (await open(pool, raw({ perPage: 5 }))).listTools();
    expect(paged.items.length).toBeGreaterThan(20);
    expect(paged.problems).toEqual([]);
    for (const loop of ['same', 'sameCursorNewItems']) {
      const { items, problems } = await (await open(pool, raw({ loop }))).listTools();
      expect(items.length).toBeGreaterThan(0);
      expect(problems).toMatchObject([
        { code: 'protocol-error', message: expect.stringContaining('cut') },
      ]);
    }
  });

  it('hands on notifications, over every process behind the connection', async () => {
    await using pool = new ConnectionPool(fast);
    const client = await open(pool, raw());
    const heard: string[] = [];
    const stop = client.onNotification((method) => heard.push(method));
    await client.callTool('changed', {});
    await vi.waitFor(() => expect(heard).toContain('notifications/tools/list_changed'));
    await client.callTool('die', {}).catch(() => undefined);
    heard.length = 0;
    await client.callTool('changed', {});
    await vi.waitFor(() => expect(heard).toContain('notifications/tools/list_changed'));
    stop();
  });

  it('does not ask for what the server does not announce', async () => {
    await using pool = new ConnectionPool();
    const client = await open(pool, raw());
    expect(await client.listPrompts()).toEqual({ items: [], problems: [] });
    expect(await client.listResources()).toEqual({ items: [], problems: [] });
  });
});

it('counts the time that nobody used a connection from its last use', async () => {
  await using pool = new ConnectionPool({ idleMs: 1_000 });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const config = raw();
    for (let i = 0; i < 3; i++) {
      await open(pool, config);
      vi.advanceTimersByTime(900);
    }
    const lease = await pool.acquire(config);
    vi.advanceTimersByTime(5_000);
    await lease.close();
    vi.advanceTimersByTime(999);
    expect(pool.status(config)).toMatchObject({ state: 'ready' });
    vi.advanceTimersByTime(2);
    expect(pool.inspect()).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});
