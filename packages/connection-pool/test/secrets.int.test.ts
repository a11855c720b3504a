import { once } from 'node:events';
import { createServer } from 'node:http';
import { inspect } from 'node:util';

import { ConnectionPool, type PoolOptions } from '@patchbay/connection-pool';
import type { McpClient, Problem, ServerConfig } from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

const fast: PoolOptions = { backOff: { firstMs: 1, maxMs: 5 } };

/** Each with something in it that is written differently in JSON or in a URL. */
const ENV = 'env-s3cr3t "quoted" €';
const TOKEN = 'hdr-s3cr3t/+="x"';
const QUERY = 'qry-s3cr3t ?&';
const SECRET = /s3cr3t/;

/** Everything that a log, a screen or a model may come to see. */
function shown(things: readonly unknown[]): string {
  return things
    .map((thing) => [
      inspect(thing, { depth: 20, showHidden: true }),
      JSON.stringify(thing),
      thing instanceof Error ? `${thing.message} ${thing.stack}` : '',
    ])
    .flat()
    .join('\n');
}

/** Uses a server that betrays what it knows wherever it can; collects whatever comes out. */
async function collect(config: ServerConfig, tools: readonly string[]) {
  const out: unknown[] = [];
  const caught = (error: unknown) => void out.push(error);
  const warn = (warning: Error) => void out.push(warning);
  process.on('warning', warn);
  const onProblem = (problem: Problem) => void out.push(problem, problem.cause);
  await using pool = new ConnectionPool({ ...fast, onProblem });
  const asker = { identity: { id: 'ann' } };
  const look = () => out.push(pool.inspect(), pool.status(config, asker));
  const use = async (what: (client: McpClient) => Promise<unknown>) => {
    try {
      await using lease = await pool.acquire(config, asker);
      lease.value.onNotification((method, params) => {
        if (method.startsWith('patchbay/')) out.push([method, params]);
      });
      await what(lease.value);
    } catch (error) {
      caught(error);
    }
    look();
  };
  for (const tool of tools) await use((client) => client.callTool(tool, {}, { timeoutMs: 300 }));
  await use((client) => client.listTools());
  process.off('warning', warn);
  return out;
}

describe.concurrent('a secret in the configuration', () => {
  const STDIO = `
    const { KEY, MODE } = process.env;
    if (MODE === 'boot') { process.stderr.write('bad key ' + KEY); process.exit(3); }
    process.stdout.write('x'.repeat(190) + KEY + '\\n');
    process.stderr.write('using ' + KEY + '\\n');
    let rest = '';
    process.stdin.on('data', (chunk) => {
      rest += chunk;
      for (let at; (at = rest.indexOf('\\n')) !== -1; rest = rest.slice(at + 1)) {
        const { id, method, params } = JSON.parse(rest.slice(0, at));
        const send = (one) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...one }) + '\\n');
        const name = params?.name;
        if (method === 'initialize') send({ result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } } });
        else if (name === 'die') { process.stderr.write('dying with ' + KEY); process.exit(4); }
        else if (name === 'never') continue;
        else if (id !== undefined) send({ error: { code: -32602, message: 'no ' + KEY, data: { env: process.env, deep: [{ KEY }] } } });
      }
    });`;

  it('of a process is in no error, problem, event or row', async () => {
    const config = (MODE: string): ServerConfig => ({
      command: process.execPath,
      args: ['-e', STDIO],
      env: { KEY: ENV, MODE },
    });
    const run = await collect(config('run'), ['refused', 'die', 'never', 'die']);
    const boot = await collect(config('boot'), ['any', 'any']);
    expect(run.length).toBeGreaterThan(10);
    const text = shown([...run, ...boot]);
    expect(text).toContain('no ***');
    expect(text).toContain('dying with ***');
    expect(text).toContain('bad key ***');
    expect(text).not.toMatch(SECRET);
  });

  it('of a server over HTTP is in no error, problem, event or row', async () => {
    const server = createServer((req, res) => {
      const said = JSON.stringify({ headers: req.headers, url: req.url });
      let body = '';
      req.on('data', (chunk: Buffer) => (body += chunk.toString()));
      req.on('end', () => {
        const { id, method, params } = JSON.parse(body || '{}') as {
          id?: number;
          method?: string;
          params?: { name?: string };
        };
        const json = (status: number, more: object) =>
          res
            .writeHead(status, { 'content-type': 'application/json' })
            .end(JSON.stringify({ jsonrpc: '2.0', id, ...more }));
        const name = params?.name;
        if (method === 'initialize')
          json(200, {
            result: {
              protocolVersion: '2025-11-25',
              capabilities: { tools: {} },
              serverInfo: { name: 'x', version: '1' },
            },
          });
        else if (req.method !== 'POST') res.writeHead(500).end(said);
        else if (id === undefined) res.writeHead(202).end();
        else if (name === 'drop') res.socket?.destroy();
        else if (name === 'html') res.writeHead(200, { 'content-type': 'text/html' }).end(said);
        else if (name === 'never') res.writeHead(200, { 'content-type': 'text/event-stream' });
        else if (name !== undefined && Number(name) > 0) res.writeHead(Number(name)).end(said);
        else json(200, { error: { code: -32_602, message: said, data: { said, more: [said] } } });
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { readonly port: number };
    const query = new URLSearchParams({ key: QUERY }).toString();
    const config: ServerConfig = {
      url: `http://127.0.0.1:${port}/mcp?${query}`,
      headers: () => ({ authorization: `Bearer ${TOKEN}`, 'x-api-key': TOKEN }),
    };
    const tools = [
      'refused',
      '400',
      '401',
      '403',
      '404',
      '429',
      '500',
      '503',
      'drop',
      'html',
      'never',
    ];
    const out = await collect(config, tools);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    out.push(...(await collect(config, ['any', 'any'])));
    expect(out.length).toBeGreaterThan(20);
    const text = shown(out);
    expect(text).toContain('***');
    expect(text).not.toMatch(SECRET);
  });
});
