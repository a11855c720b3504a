import { defineTool } from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

import { fakeView } from '../src/index.ts';

const tool = (name: string, call = () => `${name} ran`) =>
  defineTool({ capability: 't', name, call });

describe('a fake view', () => {
  it('shows what it was given, and records what is called', async () => {
    const view = fakeView({
      tools: [tool('b'), tool('a')],
      instructions: [
        { source: 't', kind: 'dynamic', text: 'now' },
        { source: 't', kind: 'static', text: 'always' },
      ],
      skills: [{ uri: 'skill://s/SKILL.md', name: 's', description: 'S.', origin: 'here' }],
    });
    expect(view.current()).toBeUndefined();
    const compiled = await view.compile();
    expect(compiled.tools.map(({ definition }) => definition.name)).toEqual(['t__a', 't__b']);
    expect(compiled.instructions.map(({ text }) => text)).toEqual(['always', 'now']);
    expect(compiled.skills).toMatchObject([{ name: 's', source: 'here' }]);
    expect(await view.compile()).toBe(compiled);
    await compiled.callTool('t__a', {});
    await expect(compiled.callTool('t__c', {})).rejects.toMatchObject({ code: 'tool-unavailable' });
    expect(view.calls).toEqual([
      { name: 't__a', args: {}, outcome: 'answered' },
      { name: 't__c', args: {}, outcome: 'rejected' },
    ]);
  });

  it('shows something else when it is told, and says so', async () => {
    await using view = fakeView({ tools: [tool('a')] });
    const before = await view.compile();
    const changes = view.changes()[Symbol.asyncIterator]();
    view.update({ tools: [tool('b')] });
    expect((await changes.next()).value).toMatchObject({ kind: 'tools_changed' });
    const after = await view.compile();
    expect(after.revision).toBeGreaterThan(before.revision);
    expect(after.tools).toHaveLength(1);
    await view.close();
    expect((await changes.next()).done).toBe(true);
  });

  it('keeps turns apart', async () => {
    const view = fakeView({
      tools: [tool('left'), tool('right')],
      turn: (userText) => ({ hide: [userText === 'left' ? 't__right' : 't__left'] }),
    });
    const [left, right] = [
      view.beginTurn({ userText: 'left' }),
      view.beginTurn({ userText: 'right', turnId: 'right' }),
    ];
    expect(view.beginTurn({ turnId: 'right' })).toBe(right);
    await Promise.all([left.prepare(), right.prepare()]);
    expect(left.current()?.tools).toHaveLength(1);
    await expect(left.callTool('t__right', {})).rejects.toMatchObject({ code: 'tool-hidden' });
    await expect(right.callTool('t__right', {})).resolves.toMatchObject({
      content: [{ text: 'right ran' }],
    });
    await right.close();
    expect(view.beginTurn({ turnId: 'right' })).not.toBe(right);
    await view.endTurns();
    expect(view.beginTurn({ turnId: 'right' }).current()).toBeUndefined();
    await expect(left.callTool('t__left', {})).rejects.toMatchObject({ code: 'closed' });
    await expect(left.prepare()).rejects.toMatchObject({ code: 'closed' });
  });

  it('refuses as a registry does: bad arguments, aborts, failures of a tool', async () => {
    const boom = tool('boom', () => {
      throw new TypeError('boom');
    });
    const { callTool } = await fakeView({ tools: [tool('a'), boom] }).compile();
    const validator = { validate: () => ({ ok: false, violations: ['x is missing'] }) as const };
    await expect(callTool('t__a', {}, { validator })).rejects.toMatchObject({
      code: 'invalid-arguments',
      details: { violations: ['x is missing'] },
    });
    await expect(callTool('t__a', {}, { signal: AbortSignal.abort('bye') })).rejects.toMatchObject({
      code: 'aborted',
      cause: 'bye',
    });
    await expect(callTool('t__boom', {})).rejects.toMatchObject({
      code: 'source-failed',
      source: 't',
    });
  });

  it('has commands and resources, but none in them', async () => {
    const { commands, resources } = fakeView();
    expect(await commands.list()).toEqual([]);
    expect(await commands.complete('/')).toEqual([]);
    expect(await commands.resolve('hello')).toBeUndefined();
    expect(await commands.resolve('/fix it')).toMatchObject({ ok: false, code: 'command-unknown' });
    expect(await resources.list()).toEqual([]);
    expect(await resources.exists('mcp://a/b')).toBe(false);
    await expect(resources.read('mcp://a/b')).rejects.toMatchObject({ code: 'not-found' });
  });
});
