import { mkdir, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import type { StdioServerConfig } from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

import { caseFile, caseServer, textOf } from './case-server.ts';

const fast: PoolOptions = { backOff: { firstMs: 1, maxMs: 20 } };
const call = async (pool: ConnectionPool, config: StdioServerConfig, tool: string) => {
  await using lease = await pool.acquire(config);
  return JSON.parse(textOf(await lease.value.callTool(tool, {}))) as unknown;
};

describe('claude-code-17565: where a server starts', () => {
  const cwd = caseFile('claude-code-17565/proj');
  const start = async (config: StdioServerConfig) => {
    await using pool = new ConnectionPool(fast);
    return (await call(pool, config, 'where')) as { cwd: string; argv: string[] };
  };

  it.each([
    ['arguments relative to it', { command: 'node', args: ['./tools/server.mjs'], cwd }, cwd],
    ['a program relative to it', { command: './tools/server.mjs', cwd }, cwd],
    [
      'another folder',
      { command: 'node', args: ['server.mjs'], cwd: `${cwd}/tools` },
      `${cwd}/tools`,
    ],
  ])('takes %s', async (_name, config, folder) => {
    expect(await start(config)).toMatchObject({ cwd: await realpath(folder), argv: [] });
  });

  it('hands on an argument with blanks as one, also from a folder with blanks', async () => {
    const args = ['./dir with space/server.mjs', 'get todays date'];
    expect(await start({ command: 'node', args, cwd })).toMatchObject({
      argv: ['get todays date'],
    });
  });

  it('names the folder that is not there', async () => {
    await expect(
      start({ command: 'node', args: ['server.mjs'], cwd: `${cwd}/missing` }),
    ).rejects.toMatchObject({
      code: 'connect-failed',
      message: expect.stringContaining(`${cwd}/missing does not exist`),
    });
  });
});

describe('cline-2157: which program is started', () => {
  const server = caseFile('cline-2157/server.mjs');
  const PATH = `${caseFile('cline-2157/bin')}:${dirname(process.execPath)}:/usr/bin:/bin`;

  it('names a command that is not there, the server and the PATH, and does not try again at once', async () => {
    await using pool = new ConnectionPool();
    const config = { command: 'no-such-cmd-xyz', label: 'tools' };
    const error: unknown = await pool.acquire(config).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'connect-failed',
      source: 'tools',
      message: expect.stringMatching(/^no-such-cmd-xyz: command not found.*PATH: \S/),
    });
    expect(pool.status(config)).toMatchObject({ state: 'degraded' });
    await expect(pool.acquire(config)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('looks in the PATH of the configuration', async () => {
    await using pool = new ConnectionPool(fast);
    expect(await call(pool, { command: 'shim', args: ['a b'], env: { PATH } }, 'argv')).toEqual([
      'a b',
    ]);
  });

  it('says that an empty command, or one with a blank at its end, is no program', async () => {
    await using pool = new ConnectionPool(fast);
    await expect(pool.acquire({ command: '' })).rejects.toMatchObject({
      code: 'connect-failed',
      message: expect.stringContaining('command is empty'),
    });
    await expect(pool.acquire({ command: 'node ', args: [server] })).rejects.toMatchObject({
      code: 'connect-failed',
      message: expect.stringContaining('"node " has blanks around it'),
    });
  });

  it('says what was searched when the PATH of the program is empty', async () => {
    const { PATH: before } = process.env;
    process.env['PATH'] = '';
    try {
      await using pool = new ConnectionPool(fast);
      await expect(pool.acquire({ command: 'no-such-cmd-xyz' })).rejects.toMatchObject({
        code: 'connect-failed',
        message: expect.stringContaining('(empty)'),
      });
    } finally {
      process.env['PATH'] = before;
    }
  });
});

describe('mcp-use-1949: what a server sees of the environment', () => {
  const secrets = {
    OPENAI_API_KEY: 'sk-openai',
    DATABASE_URL: 'postgres://user:pass@db',
    AWS_SECRET_ACCESS_KEY: 'aws-secret',
    NODE_OPTIONS: '--title=leak',
    LD_PRELOAD: '',
    LANG: 'C',
    SHELL: '() { :;}; echo leak',
  };
  const within = async (run: () => Promise<void>) => {
    const before = { ...process.env };
    Object.assign(process.env, secrets);
    try {
      await run();
    } finally {
      for (const name of Object.keys(secrets)) delete process.env[name];
      Object.assign(process.env, before);
    }
  };

  it.each([
    ['none', undefined],
    ['an empty one', {}],
    ['one variable', { A: '1' }],
  ])('with %s: the minimum, and what is configured', (_name, env) =>
    within(async () => {
      await using pool = new ConnectionPool(fast);
      const config = { command: process.execPath, args: [caseFile('mcp-use-1949/server.mjs')] };
      const seen = (await call(
        pool,
        env === undefined ? config : { ...config, env },
        'env',
      )) as Record<string, string>;
      expect(seen).toMatchObject({ PATH: process.env['PATH'], HOME: process.env['HOME'], ...env });
      for (const name of Object.keys(secrets)) expect(seen).not.toHaveProperty(name);
    }),
  );

  it('lets through what is named, to that server only', () =>
    within(async () => {
      await using pool = new ConnectionPool(fast);
      const args = [caseFile('mcp-use-1949/server.mjs')];
      const env = { LANG: process.env['LANG']!, OPENAI_API_KEY: process.env['OPENAI_API_KEY']! };
      const one = await call(pool, { command: process.execPath, args, env }, 'env');
      const two = await call(pool, { command: process.execPath, args }, 'env');
      expect(one).toMatchObject(env);
      expect(two).not.toHaveProperty('OPENAI_API_KEY');
      expect(
        JSON.stringify([pool.inspect(), pool.status({ command: process.execPath, args, env })]),
      ).not.toContain('sk-openai');
    }));

  it('keeps configured values out of what a failing server says', async () => {
    await using pool = new ConnectionPool(fast);
    const script = `console.error(JSON.stringify(process.env)); process.exit(1)`;
    const config = {
      command: process.execPath,
      args: ['-e', script],
      env: { KEY: 'sk-very-secret' },
    };
    const error = (await pool.acquire(config).catch((thrown: unknown) => thrown)) as Error;
    expect(error.message).toContain('"KEY":"***"');
    expect(JSON.stringify([error, error.message, pool.inspect()])).not.toContain('sk-very-secret');
  });
});

describe('smg-43: whose process it is', () => {
  it('keeps environments, folders and arguments apart, and shares equal ones', async () => {
    using server = caseServer('claude-code-43177/server.mjs');
    await using pool = new ConnectionPool(fast);
    await mkdir(`${server.folder}/other`);
    const { config } = server;
    const configs = [
      config,
      { ...config, env: { ...config.env, API_KEY: 'key-of-b' } },
      { ...config, cwd: `${server.folder}/other` },
      { ...config, args: [...config.args!, '--verbose'] },
      structuredClone(config),
      { ...config, env: Object.fromEntries(Object.entries(config.env!).toReversed()) },
    ];
    const pids = [];
    for (const one of configs) {
      await using lease = await pool.acquire(one);
      pids.push(textOf(await lease.value.callTool('echo', {})));
    }
    expect(new Set(pids).size).toBe(4);
    expect([pids[4], pids[5]]).toEqual([pids[0], pids[0]]);
    expect(JSON.stringify(pool.inspect())).not.toContain('key-of-b');
  });
});
