import { ConnectionPool } from '@patchbay/connection-pool';
import { describe, expect, it } from 'vitest';

import { scriptedServer } from '../src/index.ts';

const KINDS = [
  { transport: 'stdio', era: 'legacy' },
  { transport: 'stdio', era: 'modern' },
  { transport: 'http', era: 'legacy' },
  { transport: 'http', era: 'modern' },
] as const;

const text = (said: string) => ({ content: [{ type: 'text', text: said }] });

describe.each(KINDS)('a scripted $era server over $transport', (kind) => {
  it('lists and answers what it was told', async () => {
    await using pool = new ConnectionPool();
    await using server = await scriptedServer({
      ...kind,
      tools: [{ name: 'echo' }, { name: 'twice', onCall: ({ n }) => String(Number(n) * 2) }],
      resources: [{ uri: 'memo://one', text: 'first' }],
      prompts: [{ name: 'ask', text: 'Ask:' }],
      instructions: 'Be kind.',
    });
    await using lease = await pool.acquire(server.config);
    const client = lease.value;
    expect(client.info).toMatchObject({ era: kind.era, instructions: 'Be kind.' });
    expect((await client.listTools()).items.map(({ name }) => name)).toEqual(['echo', 'twice']);
    expect(await client.callTool('echo', { a: 1 })).toMatchObject(text('{"a":1}'));
    expect(await client.callTool('twice', { n: 2 })).toMatchObject(text('4'));
    expect(await client.readResource('memo://one')).toMatchObject([{ text: 'first' }]);
    expect((await client.listPrompts()).items).toMatchObject([{ name: 'ask' }]);
    expect((await client.getPrompt('ask', { x: '1' })).messages).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'Ask: {"x":"1"}' }] },
    ]);
    expect(server.executions('twice')).toBe(1);
    expect(server.connections).toBe(1);
  });

  it('counts what it did before it died', async () => {
    await using pool = new ConnectionPool({ backOff: { firstMs: 1 } });
    await using server = await scriptedServer({
      ...kind,
      tools: [
        { name: 'pay', onCall: 'die-after-execution' },
        { name: 'not', onCall: 'die-before-execution' },
        { name: 'once', onCall: 'die-once' },
      ],
    });
    await using lease = await pool.acquire(server.config);
    const client = lease.value;
    await expect(client.callTool('pay', {})).rejects.toThrow();
    expect(server.executions('pay')).toBe(1);
    await expect(client.callTool('not', {})).rejects.toThrow();
    expect(server.executions('not')).toBe(0);
    await expect(client.callTool('once', {})).rejects.toThrow();
    expect(server.executions('once')).toBe(1);
    expect(await client.callTool('once', {})).toMatchObject(text('execution 2'));
  });

  it('misbehaves by name', async () => {
    await using pool = new ConnectionPool();
    const names = [
      'slow',
      'rpc-error',
      'tool-error',
      'garbage',
      'answer-twice',
      'wrong-id',
    ] as const;
    await using server = await scriptedServer({
      ...kind,
      tools: [...names, 'never' as const].map((name) => ({ name, onCall: name })),
    });
    await using lease = await pool.acquire(server.config);
    const client = lease.value;
    const steps: number[] = [];
    const onProgress = ({ progress }: { progress: number }) => void steps.push(progress);
    expect(await client.callTool('slow', {}, { onProgress })).toMatchObject(text('slow'));
    expect(steps).toEqual([1, 2, 3, 4]);
    await expect(client.callTool('rpc-error', {})).rejects.toMatchObject({
      code: 'protocol-error',
      details: { rpcCode: -32602 },
    });
    expect(await client.callTool('tool-error', {})).toMatchObject({ isError: true });
    expect(await client.callTool('garbage', {})).toMatchObject(text('after garbage'));
    expect(await client.callTool('answer-twice', {})).toMatchObject(text('first'));
    expect(await client.callTool('wrong-id', {})).toMatchObject(text('right'));
    await expect(client.callTool('never', {}, { timeoutMs: 50 })).rejects.toMatchObject({
      code: 'timeout',
    });
    await expect.poll(() => server.cancellations).toBe(1);
  });
});

it.each(['stdio', 'http'] as const)('says over %s when its tools change', async (transport) => {
  await using pool = new ConnectionPool();
  await using server = await scriptedServer({ transport, tools: [{ name: 'a' }] });
  await using lease = await pool.acquire(server.config);
  const heard = new Promise<string>((resolve) => void lease.value.onNotification(resolve));
  server.setTools([{ name: 'b' }]);
  expect(await heard).toBe('notifications/tools/list_changed');
  expect((await lease.value.listTools()).items.map(({ name }) => name)).toEqual(['b']);
});
