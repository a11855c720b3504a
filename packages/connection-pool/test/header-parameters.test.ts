import { ConnectionPool } from '@patchbay/connection-pool';
import { describe, expect, it } from 'vitest';

import { headerParameters } from '../src/http/header-parameters.ts';

const object = (properties: object) => ({ type: 'object', properties });
const header = (name: unknown, type = 'string') => ({ type, 'x-mcp-header': name });

describe('arguments that are sent as headers', () => {
  it.each([
    ['none', object({ a: { type: 'string', default: { 'x-mcp-header': 1 } } }), []],
    [
      'some',
      object({ a: header('Region'), b: object({ c: header('Depth', 'integer') }) }),
      ['region', 'depth'],
    ],
    ['a schema that is none', null, []],
  ])('%s', (_name, schema, names) => {
    expect(headerParameters(schema)).toEqual(names);
  });

  it.each([
    ['a name with a blank', object({ a: header('two words') }), /a is no header name/],
    ['no name', object({ a: header('') }), /no header name/],
    ['a number', object({ a: header('N', 'number') }), /must be a string/],
    ['the same twice', object({ a: header('X'), b: header('x') }), /used twice/],
    [
      'within a list',
      object({ a: { type: 'array', items: object({ b: header('B') }) } }),
      /must not/,
    ],
    ['within alternatives', { ...object({}), anyOf: [object({ b: header('B') })] }, /must not/],
    ['the whole', { ...object({}), 'x-mcp-header': 'All' }, /must not/],
  ])('wrong: %s', (_name, schema, fault) => {
    expect(headerParameters(schema)).toEqual({ fault: expect.stringMatching(fault) });
  });

  it('are sent, and a tool that declares them wrongly is left out', async () => {
    const sent: Headers[] = [];
    const server: typeof fetch = async (_input, init) => {
      const { id, method } = JSON.parse(init?.body as string) as { id: number; method: string };
      const hint = { ttlMs: 0, cacheScope: 'private', resultType: 'complete' };
      if (method === 'tools/call') sent.push(new Headers(init?.headers));
      const result = {
        'server/discover': {
          ...hint,
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
        },
        'tools/list': {
          ...hint,
          tools: [
            { name: 'where', inputSchema: object({ region: header('Region') }) },
            { name: 'wrong', inputSchema: object({ region: header('not good') }) },
          ],
        },
        'tools/call': { resultType: 'complete', content: [{ type: 'text', text: 'there' }] },
      }[method];
      return Response.json({ jsonrpc: '2.0', id, result });
    };
    await using pool = new ConnectionPool();
    const config = { url: 'http://inside.test/mcp', fetch: server, label: 'maps' };
    await using lease = await pool.acquire(config);
    const { items, problems } = await lease.value.listTools();
    expect(items.map(({ name }) => name)).toEqual(['where']);
    expect(problems).toMatchObject([
      { source: 'maps', message: expect.stringContaining('"wrong"') },
    ]);
    expect(await lease.value.callTool('where', { region: 'eu' })).toMatchObject({
      content: [{ type: 'text', text: 'there' }],
    });
    expect(sent[0]?.get('mcp-param-region')).toBe('eu');
    expect(sent[0]?.get('mcp-name')).toBe('where');
  });

  it('are found out where the list was not read before, or is another one now', async () => {
    let name = 'Region';
    const asked: string[] = [];
    const server: typeof fetch = async (_input, init) => {
      const { id, method } = JSON.parse(init?.body as string) as { id: number; method: string };
      asked.push(method);
      const hint = { ttlMs: 0, cacheScope: 'private', resultType: 'complete' };
      const tool = { name: 'where', inputSchema: object({ region: header(name) }) };
      if (method === 'tools/call' && !new Headers(init?.headers).has(`mcp-param-${name}`)) {
        const error = { code: -32_020, message: 'Header mismatch' };
        return Response.json({ jsonrpc: '2.0', id, error }, { status: 400 });
      }
      const result = {
        'server/discover': {
          ...hint,
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
        },
        'tools/list': { ...hint, tools: [tool] },
        'tools/call': { resultType: 'complete', content: [{ type: 'text', text: 'there' }] },
      }[method];
      return Response.json({ jsonrpc: '2.0', id, result });
    };
    await using pool = new ConnectionPool();
    await using lease = await pool.acquire({ url: 'http://inside.test/mcp', fetch: server });
    const call = () => lease.value.callTool('where', { region: 'eu' });
    expect(await call()).toMatchObject({ content: [{ text: 'there' }] });
    name = 'Area';
    expect(await call()).toMatchObject({ content: [{ text: 'there' }] });
    const twice = ['tools/call', 'tools/list', 'tools/call'];
    expect(asked).toEqual(['server/discover', ...twice, ...twice]);
  });
});
