import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import type { HttpServerConfig, ServerConfig, StdioServerConfig } from '@patchbay/protocols';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { ConfigLoader, type LoadedConfig } from '../src/config.ts';
import { configSchema } from '../src/config-schema.ts';
import type { InputHandler, InputRequest } from '../src/inputs.ts';

let root: string;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-config-')));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content);
}
function loader(
  env: Readonly<Record<string, string>> = {},
  inputs?: InputHandler,
  config?: string,
): ConfigLoader {
  return new ConfigLoader({ cwd: root, config, env, inputs });
}
function configOf(loaded: LoadedConfig, name: string): ServerConfig | undefined {
  return loaded.servers.find((entry) => entry.name === name)?.config;
}
const stdio = (loaded: LoadedConfig, name: string) => configOf(loaded, name) as StdioServerConfig;
const http = (loaded: LoadedConfig, name: string) => configOf(loaded, name) as HttpServerConfig;
const said = ({ problems }: LoadedConfig) => problems.map(({ message }) => message);

describe('files in the shapes that clients document', () => {
  it('Claude Code: programs, HTTP, SSE, variables with and without a default, keys of its own', async () => {
    await write(
      '.mcp.json',
      `{
  "mcpServers": {
    "shared-tools": { "command": "/opt/tools/server", "args": [], "env": {} },
    "api": {
      "type": "http",
      "url": "\${API_URL:-https://api.example.com}/mcp",
      "headers": { "Authorization": "Bearer \${API_KEY}" }
    },
    "events": { "type": "sse", "url": "https://events.example.com/sse", "timeout": 60000 },
    "db": { "type": "stdio", "command": "npx", "args": ["-y", "@example/db", "--dsn", "\${DSN}"] },
    "login": { "type": "http", "url": "https://mcp.example.com", "oauth": { "callbackPort": 8080 } }
  }
}`,
    );
    const loaded = await loader({ API_KEY: 'k' }).load();
    expect(stdio(loaded, 'shared-tools')).toMatchObject({
      command: '/opt/tools/server',
      cwd: root,
    });
    expect(http(loaded, 'api')).toMatchObject({
      type: 'http',
      url: 'https://api.example.com/mcp',
      headers: { Authorization: 'Bearer k' },
    });
    expect(configOf(loaded, 'events')).toMatchObject({ type: 'sse' });
    expect(configOf(loaded, 'db')).toBeUndefined();
    expect(http(loaded, 'login').auth).toEqual({ callbackPort: 8080 });
    expect(loaded.problems).toMatchObject([
      { source: 'db', code: 'env-missing', file: join(root, '.mcp.json'), line: 10 },
    ]);
    expect(said(loaded)[0]).toContain('args.3 needs DSN, which is not set');
  });

  it('how a user logs in: as whom, for what, and whom a secret is for', async () => {
    await write(
      '.mcp.json',
      `{
  "mcpServers": {
    "known": {
      "url": "https://a.example.com/mcp",
      "oauth": { "clientId": "\${CLIENT}", "scopes": ["read", "write"], "callbackPort": 8080 }
    },
    "spaced": { "url": "https://b.example.com/mcp", "oauth": { "scope": "read  write" } },
    "none": { "url": "https://c.example.com/mcp", "oauth": false },
    "secret": {
      "url": "https://d.example.com/mcp",
      "oauth": { "clientId": "app", "clientSecret": "\${SECRET}", "issuer": "https://login.example.com" }
    },
    "loose": {
      "url": "https://e.example.com/mcp",
      "oauth": { "clientId": "app", "clientSecret": "\${SECRET}" }
    }
  }
}`,
    );
    const loaded = await loader({ CLIENT: 'app', SECRET: 'shhh-secret' }).load();
    expect(http(loaded, 'known').auth).toEqual({
      clientId: 'app',
      scopes: ['read', 'write'],
      callbackPort: 8080,
    });
    expect(http(loaded, 'spaced').auth).toEqual({ scopes: ['read', 'write'] });
    expect(http(loaded, 'none').auth).toBeUndefined();
    expect(http(loaded, 'secret').auth).toEqual({
      clientId: 'app',
      clientSecret: 'shhh-secret',
      issuer: 'https://login.example.com',
    });
    expect(configOf(loaded, 'loose')).toBeUndefined();
    expect(loaded.problems).toMatchObject([{ source: 'loose', code: 'invalid-config', line: 15 }]);
    expect(said(loaded)[0]).toContain('oauth.issuer');
    expect(said(loaded)[0]).not.toContain('shhh-secret');
  });

  it('VS Code: servers, inputs that are asked for once, the folder of the workspace, a file of variables', async () => {
    await write(
      '.vscode/mcp.json',
      `{
  // what is asked for
  "inputs": [
    { "type": "promptString", "id": "key", "description": "The key", "password": true },
    { "type": "pickString", "id": "region", "options": ["eu", "us"], "default": "eu" },
  ],
  "servers": {
    "search": {
      "type": "stdio", "command": "npx", "args": ["-y", "@example/search", "\${input:region}"],
      "env": { "KEY": "\${input:key}" }, "envFile": "\${workspaceFolder}/.env",
      "dev": { "watch": "build/**/*.js" }
    },
    "docs": { "url": "https://docs.example.com/mcp", "headers": { "X-Key": "\${input:key}" } },
    "code": { "command": "\${workspaceFolder}/bin/server", "args": ["--root", "\${workspaceFolder}"] },
    "off": { "command": "x", "disabled": true, "env": { "A": "\${input:never}" } }
  }
}`,
    );
    await write('.env', 'KEY=from-file\nLEVEL="debug"\n');
    const asked: InputRequest[] = [];
    const inputs: InputHandler = async (request) => {
      asked.push(request);
      return request.id === 'key' ? '${HOME}' : request.default;
    };
    const one = loader({}, inputs);
    const loaded = await one.load();
    expect(loaded.problems).toEqual([]);
    expect(stdio(loaded, 'search')).toMatchObject({
      args: ['-y', '@example/search', 'eu'],
      env: { KEY: '${HOME}', LEVEL: 'debug' },
    });
    expect(http(loaded, 'docs').headers).toEqual({ 'X-Key': '${HOME}' });
    expect(stdio(loaded, 'code')).toMatchObject({
      command: join(root, 'bin/server'),
      args: ['--root', root],
    });
    await one.load();
    expect(asked).toEqual([
      { id: 'region', default: 'eu', options: ['eu', 'us'] },
      { id: 'key', description: 'The key', password: true },
    ]);
  });

  it('VS Code: without an answer a server is left out, and says what it lacks', async () => {
    await write(
      '.vscode/mcp.json',
      '{ "servers": { "a": { "command": "x", "args": ["${input:key}"] }, "b": { "command": "y" } } }',
    );
    for (const inputs of [undefined, () => undefined]) {
      const loaded = await loader({}, inputs).load();
      expect(configOf(loaded, 'a')).toBeUndefined();
      expect(configOf(loaded, 'b')).toBeDefined();
      expect(said(loaded)).toEqual([expect.stringContaining('args.0 needs input:key')]);
    }
    const failing = await loader({}, () => Promise.reject(new Error('the vault is locked'))).load();
    expect(configOf(failing, 'a')).toBeUndefined();
    expect(failing.problems.map(({ cause }) => (cause as Error | undefined)?.message)).toContain(
      'the vault is locked',
    );
  });

  it('OpenCode: local and remote, commands as a list, its own placeholders, both versions', async () => {
    await write('secret.txt', 'from-a-file\n');
    await write(
      'opencode.jsonc',
      `{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "everything": {
      "type": "local",
      "command": ["npx", "-y", "@example/everything"],
      "environment": { "MODE": "{env:MODE}", "TEXT": "\${MODE}" },
    },
    "remote": {
      "type": "remote", "url": "https://mcp.example.com", "enabled": true, "timeout": 10000,
      "headers": { "Authorization": "Bearer {file:./secret.txt}" },
    },
    "login": { "type": "remote", "url": "https://login.example.com/mcp", "oauth": {} },
    "off": { "type": "local", "command": ["x"], "enabled": false },
    "unset": { "type": "local", "command": ["x", "{env:NOT_SET}"] },
  },
  "tools": { "everything*": false },
}`,
    );
    await write(
      'opencode.json',
      '{ "mcp": { "servers": { "second": { "type": "local", "command": ["y", "--z"] } } } }',
    );
    const loaded = await loader({ MODE: 'fast' }).load();
    expect(stdio(loaded, 'everything')).toMatchObject({
      command: 'npx',
      args: ['-y', '@example/everything'],
      env: { MODE: 'fast', TEXT: '${MODE}' },
    });
    expect(http(loaded, 'remote')).toMatchObject({
      type: 'http',
      headers: { Authorization: 'Bearer from-a-file' },
      timeouts: { connectMs: 10_000, listMs: 10_000 },
    });
    expect(stdio(loaded, 'second')).toMatchObject({ command: 'y', args: ['--z'] });
    expect(configOf(loaded, 'login')).toBeDefined();
    expect(loaded.servers.find(({ name }) => name === 'off')?.disabled).toBe(true);
    expect(said(loaded)).toEqual([expect.stringContaining('args.0 needs NOT_SET')]);
  });

  it('servers at the top of a file, without a key around them', async () => {
    await write(
      '.mcp.json',
      '{ "a": { "command": "x" }, "b": { "url": "https://b.example.com" } }',
    );
    const loaded = await loader().load();
    expect(loaded.servers.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(loaded.problems).toEqual([]);
  });

  it('the same server for several clients is one, and nothing to talk about', async () => {
    await write('.mcp.json', '{ "mcpServers": { "a": { "command": "x" } } }');
    await write('opencode.json', '{ "mcp": { "a": { "type": "local", "command": ["x"] } } }');
    const loaded = await loader().load();
    expect(loaded.servers).toHaveLength(1);
    expect(loaded.problems).toEqual([]);
  });
});

describe('mistakes', () => {
  it('say where, and what was perhaps meant; what is right goes on', async () => {
    await write(
      'patchbay.yaml',
      [
        'mcp_server: {}',
        'mcp_servers:',
        '  a: { command: x, agrs: [y] }',
        '  b: { comand: x }',
        '  c: { command: x, replay: sometimes }',
        'skills:',
        '  folder: [./x]',
        '  folders: [./team, "${NOT_SET}/x"]',
        'commands:',
        '  folders: ./one',
        'extensions: { max_composition_depth: none }',
        'agents:',
        '  coder: { tools: { includes: [a] } }',
      ].join('\n'),
    );
    const loaded = await loader().load();
    expect(said(loaded).map((text) => text.replace(/^patchbay\.yaml:/, ''))).toEqual([
      '1:1: `mcp_server` is not a section; did you mean `mcp_servers`?',
      '7:3: `skills.folder` is not known; did you mean `folders`?',
      '8:21: skills.folders needs NOT_SET, which is not set. Set it, or write ${NAME:-default}.',
      '10:3: commands.folders: Invalid input: expected array, received string.',
      '11:15: extensions.max_composition_depth: Invalid input: expected number, received string.',
      '13:21: `agents.coder.tools.includes` is not known; did you mean `include`?',
      expect.stringMatching(
        /^3:\d+: in the server "a" `agrs` means nothing here; did you mean `args`\?$/,
      ),
      expect.stringMatching(
        /^4:\d+: in the server "b" `comand` means nothing.*did you mean `command`/,
      ),
      expect.stringMatching(/^4:3: the server "b" is left out: it needs a `command`/),
      expect.stringMatching(/^5:\d+: the server "c" is left out: Invalid option: expected one of/),
    ]);
    expect(configOf(loaded, 'a')).toBeDefined();
    expect(loaded.skills.folders).toEqual([join(root, 'team')]);
  });

  it.each(['[]', '"text"', '{}', '{ "mcpServers": [] }', '{ "mcpServers": { "a": null } }', ''])(
    'a server file that holds %s is a problem, not a crash',
    async (content) => {
      await write('.mcp.json', content);
      const loaded = await loader().load();
      expect(loaded.problems.length).toBeGreaterThan(0);
      expect(loaded.servers.filter(({ config }) => config !== undefined)).toEqual([]);
    },
  );

  it.each(['- a', 'text', 'mcp_servers: []', 'agents: { "": {} }'])(
    'a patchbay.yaml that holds %s is a problem, not a crash',
    async (content) => {
      await write('patchbay.yaml', content);
      expect((await loader().load()).problems.length).toBeGreaterThan(0);
    },
  );

  it('a file in the middle of an edit counts as it was', async () => {
    await write('.mcp.json', '{ "mcpServers": { "a": { "command": "x" } } }');
    const one = loader();
    await one.load();
    await write('.mcp.json', '{ "mcpServers": { "a": { "comm');
    const broken = await one.load();
    expect(stdio(broken, 'a').command).toBe('x');
    expect(said(broken)[0]).toMatch(/cannot be read.*What it said before still counts/);
    await rm(join(root, '.mcp.json'));
    expect((await one.load()).servers).toEqual([]);
  });
});

it('the schema for editors is the one that is published', async () => {
  await expect(`${JSON.stringify(configSchema(), null, 2)}\n`).toMatchFileSnapshot(
    '../patchbay.schema.json',
  );
});
