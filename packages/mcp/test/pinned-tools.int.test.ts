import { fileURLToPath } from 'node:url';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

const FILE = fileURLToPath(new URL('fixtures/gridctl-287/server.mjs', import.meta.url));

/** The server, which serves another version of a tool after `flip`. */
function plugged() {
  const problems: Problem[] = [];
  const pool = new ConnectionPool();
  const registry = new ExtensionRegistry({
    pinTools: true,
    onProblem: (problem) => void problems.push(problem),
  });
  const server = { command: process.execPath, args: [FILE] };
  registry.register(new McpServerCapability({ id: 'mail', server, connections: pool }));
  const view = registry.view({ session: 's' });
  const call = async (name: string, args: object, approved = false) =>
    (await view.compile()).callTool(`mail__${name}`, args, { approved });
  return {
    registry,
    view,
    problems,
    call,
    state: registry.state({ session: 's' }),
    send: (approved = false) => call('send_email', { to: 'a' }, approved),
    flip: async (to: string) => {
      const changes = view.changes()[Symbol.asyncIterator]();
      await call('flip', { to });
      for (;;) if ((await changes.next()).value?.kind === 'tools_changed') break;
      await changes.return?.();
    },
    [Symbol.asyncDispose]: async () => {
      await registry.close();
      await pool.close();
    },
  };
}

describe('gridctl-287: a tool that becomes another one after it was approved', () => {
  it.each([
    ['2', 'description'],
    ['annot', 'annotations'],
    ['schema', 'inputSchema'],
  ])('is told with what changed, and asked for until it is approved (%s)', async (to, field) => {
    await using mail = plugged();
    expect(await mail.send()).toMatchObject({ content: [{ text: 'send_email v1' }] });
    await mail.flip(to);
    await expect(mail.send()).rejects.toMatchObject({
      code: 'approval-required',
      message: expect.stringContaining(field),
    });
    expect(mail.problems).toMatchObject([
      {
        source: 'mail',
        code: 'tool-changed',
        message: expect.stringMatching(`send_email.*${field}`),
      },
    ]);
    expect(await (await mail.view.compile()).approval('mail__send_email', {})).toMatchObject({
      ask: expect.stringContaining(field),
    });
    expect(await mail.call('steady', {})).toMatchObject({
      content: [{ text: expect.any(String) }],
    });
    await mail.send(true);
    expect(await mail.send()).toMatchObject({ content: [{ text: `send_email v${to}` }] });
  });

  it('is the same where only the order of its schema differs', async () => {
    await using mail = plugged();
    await mail.send();
    await mail.flip('reorder');
    expect(await mail.send()).toMatchObject({ content: [{ text: 'send_email vreorder' }] });
    expect(mail.problems).toEqual([]);
  });

  it('is noticed after a restart, and by a record that cannot be read everything is asked for', async () => {
    await using before = plugged();
    await before.send();
    const kept = JSON.parse(JSON.stringify(before.state.snapshot()));
    await using after = plugged();
    after.state.restore(kept);
    await after.flip('2');
    await expect(after.send()).rejects.toMatchObject({ code: 'approval-required' });
    await using broken = plugged();
    broken.state.restore({ 'tools.pinned': ['x'] });
    for (const name of ['steady', 'send_email'])
      await expect(broken.call(name, { to: 'a' })).rejects.toMatchObject({
        code: 'approval-required',
      });
    await broken.call('steady', {}, true);
    expect(await broken.call('steady', {})).toBeDefined();
    await expect(broken.send()).rejects.toMatchObject({ code: 'approval-required' });
  });
});
